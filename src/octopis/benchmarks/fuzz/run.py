"""Fuzzes targets, each in a process of its own, and looks again at what was found.

Memory is looked at twice: in the fuzzing process, whose corpus grows, and here, where the corpus
that came of it is gone through again and again without instruments: after the first rounds, nothing
may grow.
"""

import gc
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from octopis.benchmarks.fuzz.child import Plan, Told
from octopis.benchmarks.fuzz.laws import Check, Fault, fault_of, least_s
from octopis.benchmarks.fuzz.targets import TARGETS, Target
from octopis.benchmarks.processes import resident_mb
from octopis.errors import InvalidConfiguration, MissingExtra, OperationFailed
from octopis.signals import interrupts_wait

INSTRUMENTED = ["octopis", "lark", "scramp", "jwt"]
_OWN = [f"octopis.benchmarks.fuzz.{each}" for each in ("child", "laws", "mutation", "seeds")]
_CHILD = f"""
import sys
import atheris
with atheris.instrument_imports(include={INSTRUMENTED!r}, exclude={_OWN!r}):
    import msgspec
    from octopis.benchmarks.fuzz import child
child.main(atheris, msgspec.json.decode(sys.argv[1], type=child.Plan))
"""
ROUNDS = 6
GROWTH_MB_MAX = 8.0
"""What a process may grow by in all rounds but the first two: memory comes in pieces."""

_REPLAYED_MAX = 5_000
_CASES = 5_000


class Fuzzed(Struct, frozen=True):
    """What came of fuzzing one target."""

    target: str
    inputs: int
    seconds: float
    corpus: int
    """Inputs that reached something new, seeds included."""

    warm_mb: float
    end_mb: float
    grown_mb: float
    """What going through the corpus again adds, without instruments."""

    slowest_ms: float
    """What the slowest input of the corpus takes of the CPU, without instruments."""

    faults: tuple[Fault, ...]


def check_installed() -> None:
    """Raise MissingExtra where there is no atheris."""
    if importlib.util.find_spec("atheris") is None:
        raise MissingExtra("bench fuzz", "atheris", "dev")


def chosen(names: list[str] | None) -> list[Target]:
    """Return targets by name, all without names, or raise InvalidConfiguration."""
    unknown = [name for name in names or () if name not in TARGETS]
    if unknown:
        known = ", ".join(TARGETS)
        raise InvalidConfiguration(f"there is nothing {unknown[0]!r} to fuzz, only {known}")
    return [TARGETS[name] for name in names or TARGETS]


def run(
    targets: list[Target], inputs: int, seconds: float, seed: int, corpus: Path | None = None
) -> Iterator[Fuzzed]:
    """Fuzz targets one after the other, each with so many inputs or for so many seconds.

    In `corpus` there is a folder for each target, where what is found worth keeping stays for the
    next run. Raises MissingExtra, or OperationFailed where a process ends too early for another
    reason than an input.
    """
    check_installed()
    for target in targets:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made) if corpus is None else corpus / target.name
            yield fuzz(target, inputs, seconds, seed, folder)


def fuzz(target: Target, inputs: int, seconds: float, seed: int, folder: Path) -> Fuzzed:
    """Fuzz one target, in a process of its own, and look again at what it has found."""
    for part in ("corpus", "found"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds()):
        (folder / "corpus" / f"seed-{number}").write_bytes(data)
    plan = Plan(target.name, inputs, seconds, seed, str(folder))
    told = _child(plan, folder)
    with target.make() as check:
        faults = _looked_at_again(target, check, folder / "found")
        found = [each.read_bytes() for each in sorted((folder / "corpus").iterdir())]
        grown_mb = growth_mb(check, found[:_REPLAYED_MAX])
        slowest_ms = slowest_s(check, found[:_REPLAYED_MAX]) * 1000
    if grown_mb > GROWTH_MB_MAX:
        faults.append(Fault(target.name, f"memory grows: {grown_mb:.1f} MB", b""))
    return Fuzzed(
        target.name,
        told.inputs,
        round(told.seconds, 1),
        len(found),
        round(told.warm_mb, 1),
        round(told.end_mb, 1),
        round(grown_mb, 1),
        round(slowest_ms, 2),
        tuple(faults),
    )


def _child(plan: Plan, folder: Path) -> Told:
    """Run the process, and return what it tells at the end.

    Where it does not live to tell, the input that has ended it is among what was found.
    """
    told = folder / "told.json"
    told.unlink(missing_ok=True)
    log = folder / "log"
    command = [sys.executable, "-c", _CHILD, msgspec.json.encode(plan).decode()]
    with interrupts_wait() as let_them_come, log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)  # noqa: S603 - our own
        try:
            let_them_come()
            status = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
    if status == 0 and told.exists():
        return msgspec.json.decode(told.read_bytes(), type=Told)
    if any((folder / "found").iterdir()):
        return Told(0, 0.0, 0.0, 0.0)
    last = log.read_text(errors="replace")[-500:]
    raise OperationFailed(f"fuzzing {plan.target} ended with status {status}: {last}")


def _looked_at_again(target: Target, check: Check, folder: Path) -> list[Fault]:
    faults: dict[str, Fault] = {}
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        fault = fault_of(check, data, target.limit_s)
        if fault is None and not path.suffix:  # the fuzzer's own: the process has died of it
            fault = f"the process ended, and does not again ({path.name})"
        if fault is not None:
            faults.setdefault(fault, Fault(target.name, fault, data))
    return list(faults.values())


def slowest_s(check: Check, inputs: list[bytes]) -> float:
    """Return how long the slowest of inputs that break no law takes, the least of some tries."""
    return max(
        (least_s(check, each) for each in inputs if fault_of(check, each) is None), default=0
    )


def growth_mb(check: Check, inputs: list[bytes], cases: int = _CASES) -> float:
    """Return how much memory grows while inputs are gone through again and again."""
    repeated = max(1, cases // max(1, len(inputs)))
    sizes = []
    for _ in range(ROUNDS):
        for _ in range(repeated):
            for each in inputs:
                fault_of(check, each)
        gc.collect()
        sizes.append(resident_mb(os.getpid()) or 0.0)
    return sizes[-1] - sizes[1]
