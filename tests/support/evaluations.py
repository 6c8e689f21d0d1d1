"""Evaluations on real Spark that are as small as they can be, with every stage of a large one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from octopis.core.topology import NamedTopology
from octopis.evaluation import sensitivity
from octopis.evaluation.evaluate import Evaluation
from octopis.evaluation.experiments import SIZES, EvaluationSize, Sizes
from octopis.evaluation.folders import claim_folder
from octopis.evaluation.report import Report
from octopis.evaluation.sensitivity import VARIATIONS
from octopis.scenario.costs import Profile
from octopis.scenario.plan import ScenarioPlan
from octopis.version import __version__
from support.measures import PAPER, request

TINY = Sizes(
    subscribers=(20,),
    subscribers_notifications=2,
    publishers=(10,),
    publishers_subscribers=30,
    publishers_notifications=3,
    burst_subscribers=30,
    burst_notifications=2,
    burst_high_rate=300,
    several=(2,),
    quote_days=3,
)


_BASES = sensitivity.bases


def _tiny_bases(
    size: EvaluationSize, profile: Profile, topology: NamedTopology | None = None
) -> tuple[ScenarioPlan, ScenarioPlan]:
    quiet, burst = (
        replace(plan, subscribers=30, notifications_each=2)
        for plan in _BASES(size, profile, topology)
    )
    return quiet, replace(burst, high_rate_notifications=300)


@contextmanager
def tiny_sizes() -> Iterator[None]:
    """Let `quick` mean as little as can be, with a single variation of both scenarios."""
    varied = [
        each
        for each in VARIATIONS[EvaluationSize.QUICK]
        if each.name == "a subscription every 3 ms"
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SIZES, EvaluationSize.QUICK, TINY)
        patch.setitem(VARIATIONS, EvaluationSize.QUICK, tuple(varied))
        patch.setattr(sensitivity, "bases", _tiny_bases)
        yield


def evaluation_in(out: Path, **changes: Any) -> Evaluation:
    """Return the evaluation that the command without options would begin or go on with.

    `changes` are of its request.
    """
    asked = request(version=__version__, **changes)
    return Evaluation(claim_folder(out, asked), asked, PAPER, lambda _progress: None)


def evaluated(spark: SparkSession, out: Path) -> Report:
    """Run a whole evaluation, and return its report, which was written."""
    evaluation = evaluation_in(out)
    evaluation.run(spark)
    report = Report(evaluation.folders, evaluation.request, PAPER, evaluation.measures())
    report.write()
    return report
