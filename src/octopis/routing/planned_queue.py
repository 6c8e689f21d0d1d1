"""An output queue as it will be, while a broker plans the copies of a batch.

Nothing leaves a queue while a broker decides, so counting its own copies is enough to know each
queue's length "now", and all copies for a link can be handed over at once.
"""

from collections.abc import Iterable

from octopis.model import BrokerId
from octopis.routing.messages import Message
from octopis.routing.reasons import Reason


class PlannedQueue:
    """The output queue of a link, with the copies planned so far."""

    __slots__ = ("length", "link", "longest_uncongested", "messages", "reasons")

    def __init__(self, link: BrokerId, length: int, longest_uncongested: float) -> None:
        self.link = link
        self.length = length
        self.longest_uncongested = longest_uncongested
        self.messages: list[Message] = []
        self.reasons: list[Reason] = []

    def add(self, message: Message, reason: Reason) -> None:
        """Plan a copy."""
        self.length += 1
        self.messages.append(message)
        self.reasons.append(reason)

    def is_congested(self) -> bool:
        """Tell whether the queue is congested with what is planned."""
        return self.length > self.longest_uncongested


def least_loaded(queues: Iterable[PlannedQueue]) -> PlannedQueue:
    """Return the shortest queue; of equals that of the lowest cluster, then region: runs repeat."""
    return min(queues, key=_load)


def _load(queue: PlannedQueue) -> tuple[int, int, str]:
    return queue.length, queue.link.cluster, queue.link.region
