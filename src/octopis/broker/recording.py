"""What a broker tells about itself while it works; by default, nobody listens."""

from collections.abc import Sequence
from typing import Protocol

from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Broker, Message, Reason
from octopis.core.wire.published import Published


class DeliveryLog(Protocol):
    """What is told about the queue of one client."""

    def queued(self, notification: Notification, subscriptions: list[str]) -> None:
        """A notification is about to go on the client's queue."""

    def left(self, count: int) -> None:
        """Notifications went to the client."""

    def dropped(self, count: int) -> None:
        """The oldest were dropped."""


class Recording:
    """Writes nothing down. What does is a Recorder."""

    def published(self, batch: Sequence[Published]) -> None:
        """Notifications of own clients were accepted."""

    def subscribed(self, client: str, subscription: str) -> None:
        """An own client has subscribed."""

    def stored(self, subscription: str) -> None:
        """The broker knows a subscription that it did not know."""

    def deliveries(self) -> DeliveryLog | None:
        """Return what is told of the deliveries to one client, if anybody wants to know."""
        return None

    def enqueued(self, link: BrokerId, messages: list[Message], reasons: list[Reason]) -> None:
        """Messages are about to go on a link's queue."""

    def left(self, link: BrokerId, count: int) -> None:
        """Messages went over a link."""

    def dropped(self, link: BrokerId, count: int) -> None:
        """A full queue has lost notifications."""

    def link_down(self, link: BrokerId) -> None:
        """A link is down, and its queue is lost."""

    def window(self, core: Broker) -> None:
        """A window has ended."""

    def finish(self, core: Broker, deliveries_lost: int) -> None:
        """The broker has stopped."""
