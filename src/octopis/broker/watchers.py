"""Who wants to know what happens on the queues of a broker: a recorder gives links and clients one.

Each is told in the order in which things happen on its queue.
"""

from typing import Protocol

from octopis.broker.links.changes import Key
from octopis.core.model import Notification
from octopis.core.routing import Message, Reason


class LinkWatcher(Protocol):
    """Watches the queue of a link."""

    def change(
        self, key: Key, message: Message, reason: Reason, obsolete: int, now_ns: int
    ) -> None:
        """A change waits; so many are obsolete by it (2: what it takes back, and itself)."""

    def changes_left(self, count: int, now_ns: int) -> None:
        """Changes went over the link."""

    def enqueued(self, messages: list[Message], reasons: list[Reason], now_ns: int) -> None:
        """Notifications are on the queue, for these reasons."""

    def left(self, count: int, now_ns: int) -> None:
        """Notifications went over the link."""

    def lost(self, count: int, now_ns: int) -> None:
        """The full queue dropped notifications, from the end that the policy says."""

    def went_down(self, now_ns: int, rerouted: int = 0) -> None:
        """The link is down: so many of what waited go another way, and the rest is lost."""


class ClientWatcher(Protocol):
    """Watches the queue of a client."""

    def queued(self, notification: Notification, subscriptions: list[str]) -> None:
        """A notification is about to go on the client's queue."""

    def left(self, count: int) -> None:
        """Notifications went to the client."""

    def dropped(self, count: int) -> None:
        """The oldest were dropped."""

    def ended(self) -> None:
        """The client is gone, and what waited with it."""
