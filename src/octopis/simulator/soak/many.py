"""Runs many seeds one after the other, and adds up how they went."""

import time
from collections import Counter
from collections.abc import Callable

import msgspec

from octopis.simulator.soak.run import Outcome, run_seed

_SHOWN_MAX = 20


class Violated(msgspec.Struct, frozen=True):
    """A seed that broke laws, and what it says of them."""

    seed: int
    kind: str
    violations: list[str]


class Soaked(msgspec.Struct):
    """How many seeds went, all in all."""

    first: int
    seeds: int = 0
    notifications: int = 0
    deliveries: int = 0
    kinds: dict[str, int] = msgspec.field(default_factory=dict)
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    virtual_s: float = 0
    seconds: float = 0
    violated: list[Violated] = msgspec.field(default_factory=list)

    @property
    def faults(self) -> int:
        """How many faults there were."""
        return sum(count for name, count in self.counts.items() if name.startswith("fault: "))

    def add(self, outcome: Outcome) -> None:
        """Add a run."""
        self.seeds += 1
        self.notifications += outcome.notifications
        self.deliveries += outcome.deliveries
        self.virtual_s += outcome.virtual_s
        self.kinds = dict(sorted((Counter(self.kinds) + Counter([outcome.kind])).items()))
        self.counts = dict(sorted((Counter(self.counts) + Counter(outcome.counts)).items()))
        if outcome.violations:
            shown = outcome.violations[:_SHOWN_MAX]
            self.violated.append(Violated(outcome.seed, outcome.kind, shown))


def soak(
    first: int,
    seeds: int,
    progress: Callable[[Soaked], None] = lambda _: None,
    is_over: Callable[[], bool] = lambda: False,
    *,
    disk: bool = False,
) -> Soaked:
    """Run so many seeds from the first on, or until it `is_over`; `disk`: brokers have disks."""
    begin = time.perf_counter()
    soaked = Soaked(first)
    for seed in range(first, first + seeds):
        if is_over():
            break
        soaked.add(run_seed(seed, disk=disk))
        soaked.seconds = time.perf_counter() - begin
        progress(soaked)
    return soaked
