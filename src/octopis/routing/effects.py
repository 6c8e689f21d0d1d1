"""What a broker asks its driver to do."""

import msgspec

from octopis.errors import OctopisError
from octopis.model import BrokerId, Notification
from octopis.routing.messages import Message
from octopis.routing.reasons import Reason


class Enqueue(msgspec.Struct, frozen=True):
    """Put these messages, in this order, on the output queue of the link to `link`."""

    link: BrokerId
    messages: list[Message]
    reasons: list[Reason]


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Give the notification to a client; `subscriptions` are those of the client that match."""

    client: str
    notification: Notification
    subscriptions: list[str]


class Answer(msgspec.Struct, frozen=True):
    """Tell a client how its request went: accepted, or refused because of `error`."""

    client: str
    request: int
    error: OctopisError | None = None


Effect = Enqueue | Deliver | Answer
