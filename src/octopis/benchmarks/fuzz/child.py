"""One process that fuzzes one target, guided by coverage, and writes down what it finds.

`run` starts it so that our own code, and the Python libraries that read for us, are instrumented
while they are imported. Here all is slower than in the product: an input that takes long, like any
other that breaks a law, is kept for `run`, which looks at it again without instruments.
"""

import gc
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from octopis.benchmarks.fuzz.laws import Check, fault_of
from octopis.benchmarks.fuzz.targets import TARGETS
from octopis.benchmarks.processes import resident_mb

KEPT_MAX = 100
"""Inputs that break a law are kept up to so many; a fault is kept once, and at most so often."""

_EACH_MAX = 3
_LOOK = 1_024


class Plan(Struct):
    """What a process is to do."""

    target: str
    inputs: int
    seconds: float
    seed: int
    folder: str
    """Where it keeps its corpus, what it has found, and what it tells at the end."""


class Told(Struct):
    """What a process has done."""

    inputs: int
    seconds: float
    warm_mb: float
    """Memory after a fifth of the inputs."""

    end_mb: float


class Fuzzing:
    """Gives inputs to a check, and counts them; at the end of the plan it ends the process."""

    def __init__(self, plan: Plan, check: Check, limit_s: float) -> None:
        self._plan = plan
        self._check = check
        self._limit_s = limit_s
        self._folder = Path(plan.folder)
        self._count = 0
        self._warm_mb = 0.0
        self._started_at = time.monotonic()
        self._kept: dict[str, int] = {}

    def take(self, data: bytes) -> None:
        """Deal with one input."""
        fault = fault_of(self._check, data, self._limit_s)
        if fault is not None:
            self._keep(fault, data)
        self._count += 1
        if self._count % _LOOK == 0 or self._count >= self._plan.inputs:
            self._look()

    def _keep(self, fault: str, data: bytes) -> None:
        kind = "slow" if fault.startswith("it takes") else fault
        self._kept[kind] = self._kept.get(kind, 0) + 1
        if self._kept[kind] <= _EACH_MAX and sum(self._kept.values()) <= KEPT_MAX:
            found = self._folder / "found"
            (found / f"{len(list(found.iterdir())):03}.bin").write_bytes(data)
            sys.stderr.write(f"found: {fault}\n")

    def _look(self) -> None:
        """Note the memory once all is warm, and end the process when it has done its part."""
        seconds = time.monotonic() - self._started_at
        part = max(self._count / self._plan.inputs, seconds / self._plan.seconds)
        if part >= 0.2 and not self._warm_mb:
            self._warm_mb = _memory_mb()
        if part >= 1:
            told = Told(self._count, seconds, self._warm_mb or _memory_mb(), _memory_mb())
            (self._folder / "told.json").write_bytes(msgspec.json.encode(told))
            os._exit(0)  # the fuzzer would go on for ever, and knows no other end


def _memory_mb() -> float:
    gc.collect()
    return resident_mb(os.getpid()) or 0.0


def main(atheris: Any, plan: Plan) -> None:
    """Fuzz until the plan is done; does not return."""
    target = TARGETS[plan.target]
    folder = Path(plan.folder)

    def mutate(data: bytes, size_max: int, seed: int) -> bytes:
        if seed % 2:
            found: bytes = atheris.Mutate(data, size_max)
            return found
        return target.mutate(data, size_max, seed)

    words = folder / "words"
    words.write_text("".join(f'"{_escaped(each)}"\n' for each in target.words or (b"a",)))
    with target.make() as check:
        fuzzing = Fuzzing(plan, check, target.limit_s)
        arguments = [
            "fuzz",
            str(folder / "corpus"),
            f"-seed={plan.seed}",
            f"-max_len={target.size_max}",
            f"-dict={words}",
            f"-artifact_prefix={folder / 'found'}/",
            "-len_control=0",
            "-rss_limit_mb=2048",
            "-verbosity=0",
        ]
        atheris.Setup(arguments, fuzzing.take, custom_mutator=mutate)
        atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)
