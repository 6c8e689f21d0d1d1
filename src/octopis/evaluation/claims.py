"""Claims: what the paper reports beside what we measured, and whether the direction holds.

A claim's value is worked out for each seed; its direction holds if it does for every one of them.
Claims of our own have a goal instead of a figure of the paper.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean
from typing import Any, Literal

from octopis.core.routing import Algorithm
from octopis.evaluation.experiments import Experiment
from octopis.evaluation.measures import Measures

NEAR_SHARE = 0.25
"""A figure is near the paper's if it differs by so much of that at most, ..."""

NEAR_POINTS = 2.0
"""... or, if it is a percentage, by so many points."""

Verdict = Literal["near", "smaller", "larger", "holds", "not reproduced", "not held"]
Value = Callable[[Measures, int], float | None]
"""A claim's figure for one seed; None where the run has no such figure."""

OURS = (Algorithm.SNR, Algorithm.DNR)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One figure of the paper, or a goal of our own, and how to work out ours."""

    where: str
    text: str
    paper: float | None = None
    """None where it gives a direction and no figure, and for what we claim ourselves."""
    goal: str = ""
    """What we set out for, where the claim is ours and not the paper's."""
    unit: str
    value: Value
    why: Callable[[Measures], str]
    """The measured reason, for the case that ours is another."""
    holds: Callable[[Measures, int, float], bool] = lambda _all, _seed, value: value > 0
    """Whether a seed's value goes in the paper's direction, or reaches the goal."""


@dataclass(frozen=True)
class Outcome:
    """A claim, worked out."""

    claim: Claim
    values: list[float]
    """One for each seed."""
    direction_holds: bool
    reason: str

    @property
    def ours(self) -> float | None:
        """The mean over the seeds."""
        return mean(self.values) if self.values else None

    @property
    def verdict(self) -> Verdict:
        """How near the paper's figure ours is, or whether what we claim ourselves holds."""
        ours, paper = self.ours, self.claim.paper
        if not self.direction_holds or ours is None:
            return "not held" if self.claim.goal else "not reproduced"
        if paper is None:
            return "holds"
        bound = max(NEAR_SHARE * abs(paper), NEAR_POINTS if "%" in self.claim.unit else 0)
        if abs(ours - paper) <= bound:
            return "near"
        return "smaller" if ours < paper else "larger"

    def as_document(self) -> dict[str, Any]:
        """Return everything about it as plain values."""
        against = {"goal": self.claim.goal} if self.claim.goal else {"paper": self.claim.paper}
        return {
            "where": self.claim.where,
            "claim": self.claim.text,
            "unit": self.claim.unit,
            **against,
            "ours": self.ours,
            "by_seed": self.values,
            "direction_holds": self.direction_holds,
            "verdict": self.verdict,
            "reason": self.reason,
        }


def outcome(claim: Claim, measures: Measures) -> Outcome:
    """Work a claim out."""
    by_seed = {seed: claim.value(measures, seed) for seed in measures.seeds}
    values = [value for value in by_seed.values() if value is not None]
    holds = len(values) == len(by_seed) and all(
        claim.holds(measures, seed, value) for seed, value in by_seed.items() if value is not None
    )
    found = Outcome(claim, values, holds, "")
    reason = "" if found.verdict in {"near", "holds"} else claim.why(measures)
    return Outcome(claim, values, holds, reason)


def ratio(  # noqa: PLR0913 - what, where, and which two
    measures: Measures,
    value: str,
    experiment: Experiment,
    ours: tuple[Algorithm, ...],
    theirs: Algorithm,
    *,
    seed: int | None = None,
    x: int | None = None,
    variation: str | None = None,
) -> float:
    """Return ours over theirs: the mean over the points of an experiment, and over `ours`."""
    runs = measures.of(experiment, seed=seed, x=x, variation=variation)
    base = {run.point.name: run[value] for run in runs if run.algorithm is theirs}
    ratios = [
        run[value] / base[run.point.name]
        for run in runs
        if run.algorithm in ours and base[run.point.name]
    ]
    return mean(ratios) if ratios else 1.0


def ratio_at_worst(  # noqa: PLR0913 - as `ratio`
    measures: Measures,
    value: str,
    experiment: Experiment,
    ours: Algorithm,
    theirs: tuple[Algorithm, ...],
    *,
    seed: int | None = None,
    x: int | None = None,
) -> float:
    """Return ours over the least of theirs, at the point of an experiment where that is most."""
    runs = measures.of(experiment, seed=seed, x=x)
    ratios = []
    for run in runs:
        if run.algorithm is ours:
            name = run.point.name
            beside = [each for each in runs if each.algorithm in theirs and each.point.name == name]
            least = min(each[value] for each in beside)
            ratios += [run[value] / least] if least else []
    return max(ratios, default=1.0)


def less(
    value: str,
    experiment: Experiment,
    ours: tuple[Algorithm, ...],
    theirs: Algorithm,
    x: int | None = None,
) -> Value:
    """Return how many percent less ours is than theirs."""
    return lambda measures, seed: (
        100 * (1 - ratio(measures, value, experiment, ours, theirs, seed=seed, x=x))
    )


def more(
    value: str, experiment: Experiment, ours: tuple[Algorithm, ...], theirs: Algorithm
) -> Value:
    """Return how many percent more ours is than theirs."""
    return lambda measures, seed: (
        100 * (ratio(measures, value, experiment, ours, theirs, seed=seed) - 1)
    )
