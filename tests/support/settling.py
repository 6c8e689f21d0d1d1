"""Brokers in memory that also find out whether all is settled; time and order are the test's."""

from collections import deque
from collections.abc import Hashable, Iterable
from random import Random
from typing import Any

from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Effect, Marked
from octopis.core.routing.in_memory import Direction, InMemoryOverlay
from octopis.core.routing.marks import Confirmed
from octopis.core.routing.settling import Inquiry, Settling
from octopis.core.topology import SCOT
from octopis.errors import OctopisError

MS = 1_000_000


class SettlingOverlay(InMemoryOverlay):
    """Messages on queues, and beside them what goes past the queues; each in order per link."""

    def __init__(self, scot: SCOT, algorithm: Algorithm, **options: Any) -> None:
        super().__init__(scot, algorithm, **options)
        self.now_ns = 1_000 * MS
        self.past: dict[Direction, deque[Any]] = {}
        self.answers: dict[Hashable, OctopisError | None] = {}
        self.settlings = {broker: self._settling(broker) for broker in scot.brokers}
        self.now_ns += 1_000 * MS  # all have been up for a while

    def _settling(self, broker: BrokerId) -> Settling:
        # As the live broker does it: numbers come from the clock.
        return Settling(self.brokers[broker], self.scot, self.now_ns // 1000, self.now_ns)

    def restart(self, broker: BrokerId) -> None:
        super().restart(broker)
        self.settlings[broker] = self._settling(broker)

    def cut(self, one: BrokerId, other: BrokerId) -> None:
        super().cut(one, other)
        for direction in ((one, other), (other, one)):
            self.past.pop(direction, None)

    def ask(self, broker: BrokerId, request: Hashable, limit_ms: int = 10_000) -> None:
        self.settlings[broker].ask(request, limit_ms * MS, self.now_ns)
        self.send(broker)

    def carry_out(
        self, broker: BrokerId, effects: Iterable[Effect], cause: int | None = None
    ) -> None:
        effects = list(effects)
        super().carry_out(broker, effects, cause)
        for effect in effects:
            if isinstance(effect, Marked):
                self.settlings[broker].marked(effect)

    def send(self, broker: BrokerId) -> None:
        """Let a broker say what it has to say past the queues."""
        settling = self.settlings[broker]
        self.carry_out(broker, settling.effects())
        out = settling.take(self.now_ns)
        settling.look(self.now_ns)
        self.carry_out(broker, settling.effects())
        for link, message in out + settling.take(self.now_ns):
            if (broker, link) not in self.down:
                self.past.setdefault((broker, link), deque()).append(message)
        for request, error in settling.answers():
            self.answers[request] = error

    def hear(self, direction: Direction) -> None:
        """Let the next message past a queue arrive."""
        source, target = direction
        message = self.past[direction].popleft()
        if not self.past[direction]:
            del self.past[direction]
        settling = self.settlings[target]
        if isinstance(message, Inquiry):
            settling.inquired(source, message, self.now_ns)
        elif isinstance(message, Confirmed):
            settling.confirmed(message)
        else:
            settling.reported(message, self.now_ns)
        self.carry_out(target, settling.effects())

    def run(self, random: Random | None = None, ms: int = 20_000, until: Hashable = None) -> None:
        """Let time go on and everything arrive, in random order if `random` is given."""
        end_ns = self.now_ns + ms * MS
        while self.now_ns < end_ns and (until is None or until not in self.answers):
            for _ in range(200):
                self.one(random)
            self.tick(10)

    def one(self, random: Random | None = None) -> None:
        """Let one message arrive, if there is any."""
        ways = [(d, 0) for d in sorted(self.queues)] + [(d, 1) for d in sorted(self.past)]
        if ways:
            direction, is_past = random.choice(ways) if random else ways[0]
            if is_past:
                self.hear(direction)
            else:
                self.step(direction)

    def tick(self, ms: int) -> None:
        """Let time pass, and every broker say what it has to say."""
        self.now_ns += ms * MS
        for broker in self.settlings:
            self.send(broker)
