"""What the paper reports, one claim after the other, in the order of its section 7."""

from statistics import mean

from octopis.core.routing import Algorithm
from octopis.evaluation import reasons
from octopis.evaluation.claims import OURS, Claim, Value, less, more, ratio
from octopis.evaluation.experiments import RATES, Experiment
from octopis.evaluation.measures import Measures

BID, SNR, DNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR
SUBSCRIBERS, PUBLISHERS = Experiment.SUBSCRIBERS, Experiment.PUBLISHERS
BURST, SEVERAL = Experiment.BURST, Experiment.SEVERAL

DELAY = "notification_delay_mean_ns"
MATCHING = "matching_delay_mean_ns"
IMS = "notification_ims"
QUEUE = "high_rate_queue_mean"
WITHIN = "delivered_within_1s_share"


def dropped_share(measures: Measures, seed: int) -> float:
    """Return the share of BID's subscription IMs that are dropped as duplicates."""
    runs = measures.of(SUBSCRIBERS, BID, seed=seed)
    return 100 * mean(run["subscription_duplicates"] / run["subscription_ims"] for run in runs)


def earlier(measures: Measures, seed: int) -> float | None:
    """Return by how many seconds DNR stabilises the overlay before SNR."""
    gains = []
    for rate in RATES:
        ends = [
            run.series.stabilised_s
            for algorithm in (SNR, DNR)
            for run in measures.of(BURST, algorithm, seed=seed, x=rate)
            if run.series is not None
        ]
        if None in ends or len(ends) != 2:
            return None
        gains.append(ends[0] - ends[1])  # type: ignore[operator]
    return mean(gains)


def unstable(measures: Measures, seed: int) -> float:
    """Return in how many of the bursts BID is not stable when the run ends."""
    runs = measures.of(BURST, BID, seed=seed)
    return 1.0 * sum(run.series is not None and run.series.stabilised_s is None for run in runs)


def within(algorithm: Algorithm) -> Value:
    """Return the share of the burst's deliveries that came within a second."""
    return lambda measures, seed: (
        100 * measures.mean(WITHIN, measures.of(BURST, algorithm, seed=seed))
    )


def shrinks(measures: Measures, seed: int) -> float:
    """Return by how many points DNR's lead over SNR is less with the most high-rate publishers."""
    leads = reasons.leads(measures, seed)
    return leads[min(leads)] - leads[max(leads)]


def _burst_delay(theirs: Algorithm, papers: tuple[float, ...]) -> list[Claim]:
    why = reasons.burst_against_snr if theirs is SNR else reasons.burst_against_bid
    return [
        Claim(
            where="burst, section 7.3",
            text=f"notification delay of DNR at {rate // 1000}K a minute",
            paper=paper,
            unit=f"% less than {theirs.value.upper()}",
            value=less(DELAY, BURST, (DNR,), theirs, x=rate),
            why=why,
        )
        for rate, paper in zip(RATES, papers, strict=True)
    ]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        where="Figure 9(a)",
        text="subscription IMs",
        paper=89,
        unit="% fewer than BID",
        value=less("subscription_ims", SUBSCRIBERS, OURS, BID),
        why=reasons.subscription_ims,
    ),
    Claim(
        where="section 7.3",
        text="subscription IMs of BID that are dropped as duplicates",
        paper=80,
        unit="% of them",
        value=dropped_share,
        why=reasons.subscription_ims,
    ),
    Claim(
        where="section 7.3",
        text="mean length of subscription trees",
        paper=14,
        unit="% shorter than BID's",
        value=less("tree_length_mean", SUBSCRIBERS, OURS, BID),
        why=reasons.tree_lengths,
    ),
    Claim(
        where="Figure 9(b)",
        text="subscription delay",
        paper=77,
        unit="% less than BID",
        value=less("subscription_delay_mean_ns", SUBSCRIBERS, OURS, BID),
        why=reasons.subscription_delay,
    ),
    Claim(
        where="Figure 9(c)",
        text="notification delay, more subscribers",
        paper=47,
        unit="% less than BID",
        value=less(DELAY, SUBSCRIBERS, OURS, BID),
        why=reasons.notification_delay,
    ),
    Claim(
        where="Figure 9(d)",
        text="notification IMs, more subscribers",
        paper=12,
        unit="% fewer than BID",
        value=less(IMS, SUBSCRIBERS, OURS, BID),
        why=reasons.notification_ims,
    ),
    Claim(
        where="Figure 10(a)",
        text="matching delay of BID, more subscribers",
        paper=25,
        unit="% less than SNR and DNR",
        value=lambda measures, seed: (
            100 * (1 - 1 / ratio(measures, MATCHING, SUBSCRIBERS, OURS, BID, seed=seed))
        ),
        why=reasons.matching_delay,
    ),
    Claim(
        where="Figure 10(b)",
        text="notification delay, more publishers",
        paper=42,
        unit="% less than BID",
        value=less(DELAY, PUBLISHERS, OURS, BID),
        why=reasons.notification_delay,
    ),
    Claim(
        where="Figure 10(c)",
        text="notification IMs of BID, more publishers",
        paper=36.4,
        unit="% more than SNR and DNR",
        value=lambda measures, seed: (
            100 * (1 / ratio(measures, IMS, PUBLISHERS, OURS, BID, seed=seed) - 1)
        ),
        why=reasons.notification_ims,
    ),
    Claim(
        where="Figure 10(d)",
        text="matching delay of SNR and DNR, more publishers",
        paper=265,
        unit="% higher than BID",
        value=more(MATCHING, PUBLISHERS, OURS, BID),
        why=reasons.matching_delay,
    ),
    Claim(
        where="burst, section 7.3",
        text="queue length of DNR on the high-rate publisher's ways",
        paper=48,
        unit="% less than SNR",
        value=less(QUEUE, BURST, (DNR,), SNR),
        why=reasons.burst_against_snr,
    ),
    Claim(
        where="burst, section 7.3",
        text="queue length of DNR on the high-rate publisher's ways",
        paper=59,
        unit="% less than BID",
        value=less(QUEUE, BURST, (DNR,), BID),
        why=reasons.burst_against_bid,
    ),
    *_burst_delay(SNR, (13, 12.1, 11)),
    *_burst_delay(BID, (58, 53, 49.2)),
    Claim(
        where="Figure 11",
        text="DNR stabilises the overlay before SNR",
        paper=239,
        unit="s earlier",
        value=earlier,
        why=reasons.stabilisation,
    ),
    Claim(
        where="Figure 11",
        text="bursts (of three) in which BID is not stable when the run ends",
        paper=3,
        unit="bursts",
        value=unstable,
        why=reasons.stabilisation,
    ),
    Claim(
        where="burst, section 7.3",
        text="notification IMs of DNR",
        paper=0.32,
        unit="% more than SNR",
        value=more(IMS, BURST, (DNR,), SNR),
        why=reasons.burst_ims,
        holds=lambda _all, _seed, value: value >= 0,
    ),
    Claim(
        where="burst, section 7.3",
        text="notification IMs of DNR",
        paper=17.2,
        unit="% fewer than BID",
        value=less(IMS, BURST, (DNR,), BID),
        why=reasons.burst_ims,
    ),
    Claim(
        where="burst, section 7.3",
        text="delivered within 1 s by DNR (more than by SNR)",
        paper=44.2,
        unit="%",
        value=within(DNR),
        why=reasons.within_a_second,
        holds=lambda measures, seed, value: value > (within(SNR)(measures, seed) or 0),
    ),
    Claim(
        where="burst, section 7.3",
        text="delivered within 1 s by SNR (more than by BID)",
        paper=39,
        unit="%",
        value=within(SNR),
        why=reasons.within_a_second,
        holds=lambda measures, seed, value: value > (within(BID)(measures, seed) or 0),
    ),
    Claim(
        where="burst, section 7.3",
        text="delivered within 1 s by BID (fewest)",
        paper=28,
        unit="%",
        value=within(BID),
        why=reasons.within_a_second,
        holds=lambda measures, seed, value: (
            value < min(within(each)(measures, seed) or 0 for each in OURS)
        ),
    ),
    Claim(
        where="section 7.3",
        text="DNR's lead over SNR in notification delay shrinks with more high-rate publishers",
        paper=None,
        unit="points",
        value=shrinks,
        why=reasons.several,
    ),
)
