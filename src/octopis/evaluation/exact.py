"""What follows from the structure, or is promised, and must hold exactly in every run."""

from dataclasses import dataclass

from octopis.evaluation.experiments import Experiment
from octopis.evaluation.measures import Measures
from octopis.routing import Algorithm

OURS = (Algorithm.SNR, Algorithm.DNR)


@dataclass(frozen=True)
class Exact:
    """One thing that must hold, and what was found."""

    text: str
    found: str
    holds: bool


def exact(measures: Measures) -> list[Exact]:
    """Return everything that must hold, whether it does or not."""
    ours = [run for run in measures.all if run.algorithm in OURS]
    brokers = {int(run["brokers"]) for run in ours}
    least = min(int(run["subscription_ims_min"]) for run in ours)
    most = max(int(run["subscription_ims_max"]) for run in ours)
    longer, trees = (int(sum(run[name] for run in ours)) for name in ("trees_longer", "trees"))
    dropped = int(sum(run["subscription_duplicates"] for run in ours))
    wrong = [run for run in measures.all if not run.is_exact or run["deliveries_lost"]]
    deliveries = int(sum(run["deliveries"] for run in measures.all))
    differing = _differing(measures)
    return [
        Exact(
            "A subscription takes one message less than there are brokers (SNR, DNR)",
            f"{least} to {most} messages, {', '.join(map(str, sorted(brokers)))} brokers",
            {least, most} == {brokers.pop() - 1} and not brokers,
        ),
        Exact(
            "Subscription trees are as short as the graph allows (SNR, DNR)",
            f"{longer:,} of {trees:,} trees are longer",
            not longer,
        ),
        Exact(
            "No subscription reaches a broker twice (SNR, DNR)",
            f"{dropped:,} duplicates",
            not dropped,
        ),
        Exact(
            "Subscriptions spread alike under SNR and DNR",
            f"{differing} scenarios with another delay",
            not differing,
        ),
        Exact(
            "Deliveries are those of the ground truth: none lost, twice or unasked (all)",
            f"{len(measures.all) - len(wrong)} of {len(measures.all)} runs, "
            f"{deliveries:,} deliveries",
            not wrong,
        ),
    ]


def _differing(measures: Measures) -> int:
    """Count the scenarios whose subscriptions took another time under DNR than under SNR."""
    found: dict[tuple[Experiment, str], set[float]] = {}
    for run in measures.all:
        if run.algorithm in OURS:
            key = run.point.experiment, run.point.name
            found.setdefault(key, set()).add(run["subscription_delay_mean_ns"])
    return sum(len(delays) > 1 for delays in found.values())
