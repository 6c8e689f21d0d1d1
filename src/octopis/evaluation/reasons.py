"""Why a figure of ours is not the paper's, said with what was measured of the paper's algorithms.

Each function returns the sentences for one kind of claim, and its docstring names the reason.
"""

from octopis.core.routing import Algorithm
from octopis.evaluation.claims import ratio
from octopis.evaluation.experiments import OF_THE_PAPER, RATES, EvaluationSize, Experiment
from octopis.evaluation.measures import Measure, Measures
from octopis.evaluation.sensitivity import VARIATIONS

BID, SNR, DNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR
DELAY = "notification_delay_mean_ns"
MS = 1e6


def subscription_ims(measures: Measures) -> str:
    """The overlay's structure alone decides how many messages a subscription takes."""
    ours, theirs = (_each(measures, algorithm, "subscription_ims") for algorithm in (SNR, BID))
    return (
        f"This follows from the overlay alone: a subscription takes {ours:g} messages, and "
        f"{theirs:g} by flooding, under any costs."
    )


def tree_lengths(measures: Measures) -> str:
    """A flood's tree depends on which copies come first, and here the short ones do."""
    runs = measures.of(Experiment.SUBSCRIBERS, BID)
    longer = sum(run["trees_longer"] for run in runs) / sum(run["trees"] for run in runs)
    return (
        "A flood's tree follows the copies that come first. Here queues are short while "
        f"subscriptions spread, so that {100 * (1 - longer):.0f}% of BID's trees are as short as "
        "ours. " + _varied(measures, "tree_length_mean", "shorter", "a subscription every")
    )


def subscription_delay(measures: Measures) -> str:
    """While queues are short, a flood's first copy is as fast as ours."""
    ours, theirs = (
        measures.mean("subscription_delay_mean_ns", measures.of(Experiment.SUBSCRIBERS, algorithm))
        for algorithm in (SNR, BID)
    )
    return (
        "With 10 ms between subscriptions (the paper does not say) queues are short, and the first "
        f"copy of a flood is about as fast as ours: {theirs / MS:.2f} and {ours / MS:.2f} ms. "
        + _varied(measures, "subscription_delay_mean_ns", "less", "a subscription every")
    )


def notification_delay(measures: Measures) -> str:
    """Matching at every broker costs more here than carrying identifications."""
    counts = sorted({run.point.x for run in measures.of(Experiment.SUBSCRIBERS)})
    by_count = " and ".join(
        f"{_said(_less(measures, DELAY, Experiment.SUBSCRIBERS, x), 'less')} with {x:,}"
        for x in (counts[0], counts[-1])
    )
    return (
        "Ours match at every broker on the way, BID at the ends only, and the assumed costs make "
        "that dearer than carrying and splitting identifications: the delay is "
        f"{by_count} subscribers. "
        + _varied(
            measures, DELAY, "less", "matching_per_subscription_ns x 0", "identification_ns x 10"
        )
    )


def notification_ims(measures: Measures) -> str:
    """BID's trees are hardly longer than ours, and share links."""
    trees = _less(measures, "tree_length_mean", Experiment.SUBSCRIBERS)
    return (
        f"IMs follow the trees, and ours are only {trees:.1f}% shorter here. BID's trees of one "
        "host also share links that ours, which cross between clusters at the publisher's host, "
        "do not. " + _varied(measures, "notification_ims", "fewer", "a subscription every")
    )


def matching_delay(measures: Measures) -> str:
    """Ours match at every broker on the way, BID at the ends."""
    runs = measures.of(Experiment.SUBSCRIBERS, SNR)
    brokers = sum(run["notification_ims"] / run["notifications"] + 1 for run in runs) / len(runs)
    return (
        f"Ours match a notification at {brokers:.0f} brokers on average, each against its whole "
        "table; BID does so once, and at its targets against local subscriptions only. How much "
        "that costs depends on the matcher: here time grows linearly with the subscriptions."
    )


def burst_against_snr(measures: Measures) -> str:
    """The publisher's host cannot send fast enough, and DNR relieves it."""
    return (
        "In the model all links of a broker share its sender, and the high-rate publisher's host "
        f"cannot send fast enough: {_queues(measures)}. DNR sends one copy where SNR sends one to "
        "every cluster, and others make the rest."
    )


def burst_against_bid(measures: Measures) -> str:
    """BID's trees may spare the publisher's host."""
    return (
        "A BID tree crosses between clusters anywhere, not only at the publisher's host, which "
        "therefore sends fewer copies than under SNR; where it is depends on how the flood went. "
        f"The {_queues(measures)}."
    )


def stabilisation(measures: Measures) -> str:
    """When the last late delivery came under each algorithm."""
    ends = "; ".join(
        f"{rate // 1000}K: "
        + ", ".join(
            f"{run.algorithm.value.upper()} {_end(run)}" for run in _first_seed(measures, rate)
        )
        for rate in RATES
    )
    return (
        "Last delivery that took over 1 s, counted from the first notification due: " + ends + ". "
        f"The paper's overlay stayed overloaded for over 18 minutes; half of our deliveries take "
        f"{_first_seed(measures, RATES[0])[0]['notification_delay_p50_ns'] / MS:.1f} ms or less."
    )


def burst_ims(measures: Measures) -> str:
    """DNR's detours cost few messages."""
    runs = {run.algorithm: run["notification_ims"] for run in _first_seed(measures, RATES[0])}
    return (
        f"At {RATES[0] // 1000}K: BID {runs[BID]:,.0f}, SNR {runs[SNR]:,.0f}, "
        f"DNR {runs[DNR]:,.0f}. " + notification_ims(measures)
    )


def within_a_second(measures: Measures) -> str:
    """Most deliveries are not of the burst, and are fast."""
    run = _first_seed(measures, RATES[0])[0]
    regular = run.point.plan.publishers * run.point.plan.notifications_each
    return (
        f"{regular:,} of {run['notifications']:,.0f} notifications are not the high-rate "
        "publisher's, and each of them has many more subscribers. The model's brokers deliver "
        "those in milliseconds; by its figures, the paper's brokers did not."
    )


def several(measures: Measures) -> str:
    """DNR's lead for each number of high-rate publishers."""
    shown = ", ".join(
        f"{count}: {lead:.1f}%" for count, lead in leads(measures, measures.seeds[0]).items()
    )
    return f"Less delay than SNR by number of high-rate publishers: {shown}."


def leads(measures: Measures, seed: int, algorithm: Algorithm = DNR) -> dict[int, float]:
    """Return how many percent less a dynamic one's delay is than SNR's, by publishers."""
    found = {1: _less(measures, DELAY, Experiment.BURST, RATES[0], (algorithm,), SNR, seed)}
    for count in sorted({run.point.x for run in measures.of(Experiment.SEVERAL, seed=seed)}):
        found[count] = _less(measures, DELAY, Experiment.SEVERAL, count, (algorithm,), SNR, seed)
    return found


def _less(  # noqa: PLR0913, PLR0917 - as `ratio`
    measures: Measures,
    value: str,
    experiment: Experiment,
    x: int | None = None,
    ours: tuple[Algorithm, ...] = (SNR,),
    theirs: Algorithm = BID,
    seed: int | None = None,
) -> float:
    return 100 * (1 - ratio(measures, value, experiment, ours, theirs, x=x, seed=seed))


def _each(measures: Measures, algorithm: Algorithm, value: str) -> float:
    run = measures.of(Experiment.SUBSCRIBERS, algorithm)[0]
    return run[value] / run["subscriptions"]


def _varied(measures: Measures, value: str, word: str, *beginnings: str) -> str:
    """Say what a value is in the sensitivity table's rows of some names (SNR against BID)."""
    found = []
    for variation in VARIATIONS[EvaluationSize.FULL]:
        runs = measures.of(Experiment.SENSITIVITY, x=0, variation=variation.name)
        if runs and variation.name.startswith(beginnings):
            share = ratio(
                measures, value, Experiment.SENSITIVITY, (SNR,), BID, x=0, variation=variation.name
            )
            found.append(f"{_said(100 * (1 - share), word)} at `{variation.name}`")
    return f"In the sensitivity table it is {', '.join(found)}." if found else ""


def _said(percent: float, word: str) -> str:
    """Say by how much a value is below another, or above it."""
    opposite = {"less": "more", "fewer": "more", "shorter": "longer"}
    shown = f"{abs(percent):.1f}%"
    return f"{shown} {word if percent >= 0 or shown == '0.0%' else opposite[word]}"


def _first_seed(measures: Measures, rate: int) -> list[Measure]:
    runs = measures.of(Experiment.BURST, x=rate, seed=measures.seeds[0])
    return [run for run in runs if run.algorithm in OF_THE_PAPER]


def _queues(measures: Measures) -> str:
    runs = _first_seed(measures, RATES[0])
    shown = ", ".join(
        f"{run.algorithm.value.upper()} {run['high_rate_queue_mean']:,.0f} messages on "
        f"{run['high_rate_links']:.0f} links"
        for run in runs
    )
    return f"mean queues on its ways at {RATES[0] // 1000}K are {shown}"


def _end(run: Measure) -> str:
    end = run.series.stabilised_s if run.series is not None else None
    return "never" if end is None else f"{end:.0f} s"
