"""Why something that we set out for with target routing (TNR) is not reached, as measured."""

from collections.abc import Callable

from octopis.core.routing import Algorithm, Reason
from octopis.evaluation.experiments import Experiment
from octopis.evaluation.measures import Measures

TNR = Algorithm.TNR
DELAY, IMS = "notification_delay_mean_ns", "notification_ims"
MATCHING = "matching_delay_mean_ns"

_MS = 1e-6
_MEASURED = {
    MATCHING: ("Time spent matching, in ms", _MS, ",.3f"),
    DELAY: ("Mean delay, in ms", _MS, ",.2f"),
    IMS: ("IMs", 1.0, ",.0f"),
}
_VARIED = {
    Experiment.SUBSCRIBERS: "subscribers",
    Experiment.PUBLISHERS: "publishers",
    Experiment.BURST: "a minute",
    Experiment.SEVERAL: "high-rate publishers",
}
_WHY = {
    MATCHING: (
        "Both match once against a whole table, and then at each target against the subscriptions "
        "of its own clients."
    ),
    DELAY: (
        "TNR does not match on the way, and its paths are as short as the graph allows. But it "
        "crosses late: the brokers of the publisher's cluster send to all others of their regions, "
        "one copy after another. The more brokers are targets, the longer a copy waits there, and "
        "the longer do notifications that are published in one cluster within a few ms wait for "
        "each other."
    ),
    IMS: (
        "Which targets share a copy depends on where they are, and what goes around takes copies "
        "of its own: for single sets of targets TNR can need more."
    ),
}


def of(
    value: str, experiment: Experiment, algorithms: tuple[Algorithm, ...]
) -> Callable[[Measures], str]:
    """Return what says why a value may be another than hoped for, and how it came out."""
    return lambda measures: f"{_WHY[value]} {_figures(measures, value, experiment, algorithms)}"


def burst_delay(measures: Measures) -> str:
    """Where all of a broker's iCOLs are overloaded at once, nothing can go around."""
    waited = "; ".join(
        f"{run.point.x:,} a minute: {run.cases.get(Reason.WAITS.value, 0):,} and "
        f"{run.cases.get(Reason.AROUND_OVERLOAD.value, 0):,}"
        for run in measures.of(Experiment.BURST, TNR, seed=measures.seeds[0])
    )
    return (
        "What has no open way goes around together, over one open iCOL. The links of a broker "
        "share its sender, so that its iCOLs are often overloaded all at once; then each part "
        "waits on its own way, and the broker has all of these copies to send. Copies that waited, "
        f"and that went around: {waited}. "
        + _figures(measures, DELAY, Experiment.BURST, (TNR, Algorithm.DNR))
    )


def _figures(
    measures: Measures, value: str, experiment: Experiment, algorithms: tuple[Algorithm, ...]
) -> str:
    """Say what a value was at every point of an experiment, for the first seed."""
    title, scale, digits = _MEASURED[value]
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
    names = ", ".join(each.value.upper() for each in algorithms)
    first = f" (seed {seed})" if len(measures.seeds) > 1 else ""
    return f"{title}, of {names}{first}: {found}."
