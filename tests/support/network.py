"""The in-memory overlay as tests use it: any order, refusals noted, links in any state."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from octopis.core.filters import Filter
from octopis.core.matching import LinearIndex
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm, Broker, Effect, Message
from octopis.core.routing.in_memory import Delivered, Direction, InMemoryOverlay, Sent
from octopis.core.topology import SCOT
from octopis.errors import OctopisError

__all__ = ["Delivered", "Network", "Sent", "Step"]


@dataclass
class Step:
    """What arrived where, and what the broker did about it."""

    broker: BrokerId
    sender: BrokerId | None
    messages: list[Message]
    effects: list[Effect]
    queue_lengths: dict[BrokerId, int] = field(default_factory=dict)
    overloaded: set[BrokerId] = field(default_factory=set)
    """The broker's links as it saw them: noted only for DNR, which looks, and where weather is."""


class Network(InMemoryOverlay):
    """Refusals are collected in `errors`, and what brokers did in `steps`.

    `weather` is called before a broker is told anything, and may change its link status.
    """

    def __init__(
        self,
        scot: SCOT,
        algorithm: Algorithm,
        make: Callable[..., Broker] = Broker,
        weather: Callable[["Network", BrokerId], None] | None = None,
        **options: object,
    ) -> None:
        super().__init__(scot, algorithm, make, **({"index": LinearIndex} | options))
        self._weather = weather
        self.errors: list[OctopisError] = []
        self.steps: list[Step] = []

    def subscribe(
        self,
        broker: BrokerId,
        client: str,
        subscription: str,
        filter_: Filter | str,
        epoch: int | None = None,
    ) -> None:
        try:
            super().subscribe(broker, client, subscription, filter_, epoch)
        except OctopisError as refusal:
            self.errors.append(refusal)

    def unsubscribe(self, broker: BrokerId, client: str, subscription: str) -> None:
        try:
            super().unsubscribe(broker, client, subscription)
        except OctopisError as refusal:
            self.errors.append(refusal)

    def publish(self, broker: BrokerId, *notifications: Notification) -> None:
        step = self._begin(broker, None, [])
        step.effects = self.brokers[broker].client_publishes(notifications)
        self.carry_out(broker, step.effects)

    def busy(self) -> list[Direction]:
        """Return the directions with something on the way, in an order that repeats."""
        return sorted(self.queues)

    def step(self, direction: Direction, count: int = 1) -> list[Effect]:
        source, target = direction
        if self._weather is not None:
            waiting = len(self.queues[direction])
            self.brokers[source].link_status[target].queue_length = waiting
        step = self._begin(target, source, self.messages(direction)[:count])
        step.effects = super().step(direction, count)
        return step.effects

    def settle(
        self, random: Random | None = None, steps_max: int = 1_000_000, batch_max: int = 1
    ) -> None:
        """Let everything arrive, in random order and batches if `random` is given."""

        def choose(busy: list[Direction]) -> tuple[Direction, int]:
            if random is None:
                return min(busy), 1
            return random.choice(busy), random.randint(1, batch_max)

        super().settle(choose, steps_max)

    def _begin(self, broker: BrokerId, sender: BrokerId | None, messages: list[Message]) -> Step:
        step = Step(broker, sender, messages, [])
        self.steps.append(step)
        if self._weather is not None:
            self._weather(self, broker)
        if self._weather is not None and self.algorithm is Algorithm.DNR:
            for link, status in self.brokers[broker].link_status.items():
                step.queue_lengths[link] = status.queue_length
                if status.is_overloaded:
                    step.overloaded.add(link)
        return step
