"""Why something that we set out for with target routing (TNR) is not reached, as measured."""

from collections.abc import Callable

from octopis.core.routing import Algorithm
from octopis.evaluation.experiments import Experiment
from octopis.evaluation.measures import Measures

_MS = 1e-6

_MEASURED = {
    "matching_delay_mean_ns": ("Time spent matching, in ms", _MS, ",.3f"),
    "notification_delay_mean_ns": ("Mean delay, in ms", _MS, ",.2f"),
    "notification_ims": ("IMs", 1.0, ",.0f"),
}
_VARIED = {
    Experiment.SUBSCRIBERS: "subscribers",
    Experiment.PUBLISHERS: "publishers",
    Experiment.BURST: "a minute",
    Experiment.SEVERAL: "high-rate publishers",
}
_WHY = {
    "matching_delay_mean_ns": (
        "Both match once against a whole table, and then at each target against the subscriptions "
        "of its own clients."
    ),
    "notification_delay_mean_ns": (
        "TNR saves matching on the way, and pays for each target that a copy carries, in the step "
        "and in bytes; under overload copies that go around take more hops."
    ),
    "notification_ims": (
        "Which targets share a copy depends on where they are, and what goes around takes copies "
        "of its own: for single sets of targets TNR can need more."
    ),
}


def of(
    value: str, experiment: Experiment, algorithms: tuple[Algorithm, ...]
) -> Callable[[Measures], str]:
    """Return what says how a value came out at every point of an experiment, and what it is of."""
    names = ", ".join(each.value.upper() for each in algorithms)
    title, scale, digits = _MEASURED[value]

    def say(measures: Measures) -> str:
        seed = measures.seeds[0]
        points = dict.fromkeys(run.point.x for run in measures.of(experiment, seed=seed))
        found = "; ".join(
            f"{x:,} {_VARIED[experiment]}: "
            + ", ".join(
                format(scale * run[value], digits)
                for each in algorithms
                for run in measures.of(experiment, each, seed=seed, x=x)
            )
            for x in points
        )
        first = f" (seed {seed})" if len(measures.seeds) > 1 else ""
        return f"{_WHY[value]} {title}, of {names}{first}: {found}."

    return say
