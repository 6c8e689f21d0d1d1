"""Carries out what the routing core says: messages onto the queues of links and clients.

It keeps to what `octopis.core.routing.broker` demands of a driver: effects are carried out in order
before the core is told anything else. What was put on queues leaves them at the next `flush`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from octopis.broker.recorder import Recorder
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Deliver, Effect, Enqueue, Lost, Marked, Message, Reason


class Output(Protocol):
    """Whatever has a queue and a socket."""

    def pump(self) -> None:
        """Let messages go from the queue to the socket, as far as both allow."""


class LinkOutput(Output, Protocol):
    """A link, as the core's effects reach it."""

    def enqueue(self, messages: list[Message], reasons: list[Reason]) -> None:
        """Put messages on the queue."""


class ClientOutput(Output, Protocol):
    """A client, as the core's effects reach it."""

    def deliver(self, notification: Notification, subscriptions: list[str]) -> None:
        """Put a notification on the queue, for these of the client's subscriptions."""

    def lost(self, subscription: str) -> None:
        """Say that a subscription is another connection's now."""


class Effects:
    """What the core says, carried out. `links` and `clients` are those of the broker."""

    def __init__(
        self,
        links: Mapping[BrokerId, LinkOutput],
        clients: Mapping[str, ClientOutput],
        recorder: Recorder,
    ) -> None:
        self._links = links
        self._clients = clients
        self._recorder = recorder
        self._unsent: dict[Output, None] = {}
        self.undelivered = 0
        """Deliveries for clients that are gone already."""

        self.on_mark: Callable[[Marked], None] = lambda _: None
        """Called when a neighbour's mark has come."""

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Put what the core wants sent on queues, in order."""
        for effect in effects:
            if isinstance(effect, Deliver):
                client = self._clients.get(effect.client)
                if client is None:  # it is gone, and its subscriptions end one after the other
                    self.undelivered += 1
                    continue
                client.deliver(effect.notification, effect.subscriptions)
                self._unsent[client] = None
            elif isinstance(effect, Enqueue):
                link = self._links[effect.link]
                link.enqueue(effect.messages, effect.reasons)
                self._unsent[link] = None
            elif isinstance(effect, Lost):
                client = self._clients.get(effect.client)
                if client is not None:
                    client.lost(effect.subscription)
                    self._unsent[client] = None
            elif isinstance(effect, Marked):
                self.on_mark(effect)
            else:
                self._recorder.stored(effect.subscription)

    def add(self, output: Output) -> None:
        """Let the next `flush` see to this one, too: there is an answer for it."""
        self._unsent[output] = None

    def forget(self, output: Output) -> None:
        """Leave out an output whose connection is gone."""
        self._unsent.pop(output, None)

    def flush(self) -> None:
        """Let go what was put on queues since the last time."""
        unsent, self._unsent = self._unsent, {}
        for output in unsent:
            output.pump()
