"""What we set out for with target routing (TNR). These claims are ours, not the paper's.

Where a claim is one about several points, its figure is that of the worst of them.
"""

from octopis.core.routing import Algorithm
from octopis.evaluation import target_reasons
from octopis.evaluation.claims import Claim, Value, ratio_at_worst
from octopis.evaluation.experiments import RATES, Experiment
from octopis.evaluation.paper_claims import DELAY, IMS, MATCHING

BID, SNR, DNR, TNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR, Algorithm.TNR
SUBSCRIBERS, PUBLISHERS = Experiment.SUBSCRIBERS, Experiment.PUBLISHERS
BURST, SEVERAL = Experiment.BURST, Experiment.SEVERAL

MATCHING_MOST = 1.1
BURST_DELAY_MOST = 0.5


def times(
    value: str, experiment: Experiment, theirs: tuple[Algorithm, ...], x: int | None = None
) -> Value:
    """Return TNR's figure over the least of theirs, where that is the most."""
    return lambda measures, seed: ratio_at_worst(
        measures, value, experiment, TNR, theirs, seed=seed, x=x
    )


def _matching(where: str, varied: str, experiment: Experiment) -> Claim:
    return Claim(
        where=where,
        text=f"matching delay, more {varied}",
        goal=f"at most {MATCHING_MOST:g}",
        unit="times BID's, at worst",
        value=times(MATCHING, experiment, (BID,)),
        why=target_reasons.of(MATCHING, experiment, (TNR, BID)),
        holds=lambda _all, _seed, value: value <= MATCHING_MOST,
    )


def _delay(where: str, varied: str, experiment: Experiment) -> Claim:
    return Claim(
        where=where,
        text=f"notification delay, more {varied}",
        goal="below 1",
        unit="times the lesser of SNR's and BID's, at worst",
        value=times(DELAY, experiment, (SNR, BID)),
        why=target_reasons.of(DELAY, experiment, (TNR, SNR, BID)),
        holds=lambda _all, _seed, value: value < 1,
    )


def _ims(where: str, text: str, experiment: Experiment, *theirs: Algorithm) -> Claim:
    names = " and ".join(f"{each.value.upper()}'s" for each in theirs)
    return Claim(
        where=where,
        text=f"notification IMs, {text}",
        goal="at most 1",
        unit=f"times {'the fewer of ' if len(theirs) > 1 else ''}{names}, at worst",
        value=times(IMS, experiment, theirs),
        why=target_reasons.of(IMS, experiment, (TNR, *theirs)),
        holds=lambda _all, _seed, value: value <= 1,
    )


TARGET_CLAIMS: tuple[Claim, ...] = (
    _delay("Figure 9(c)", "subscribers", SUBSCRIBERS),
    _ims("Figure 9(d)", "more subscribers", SUBSCRIBERS, SNR, BID),
    _matching("Figure 10(a)", "subscribers", SUBSCRIBERS),
    _delay("Figure 10(b)", "publishers", PUBLISHERS),
    _ims("Figure 10(c)", "more publishers", PUBLISHERS, SNR, BID),
    _matching("Figure 10(d)", "publishers", PUBLISHERS),
    *(
        Claim(
            where="burst",
            text=f"notification delay at {rate // 1000}K a minute",
            goal=f"at most {BURST_DELAY_MOST:g}",
            unit="times DNR's",
            value=times(DELAY, BURST, (DNR,), x=rate),
            why=target_reasons.burst_delay,
            holds=lambda _all, _seed, value: value <= BURST_DELAY_MOST,
        )
        for rate in RATES
    ),
    Claim(
        where="burst",
        text="notification IMs against DNR, at all three rates",
        goal="below 1",
        unit="times DNR's, at worst",
        value=times(IMS, BURST, (DNR,)),
        why=target_reasons.of(IMS, BURST, (TNR, DNR)),
        holds=lambda _all, _seed, value: value < 1,
    ),
    _ims("burst", "at all three rates", BURST, SNR, BID),
    # BID is not run there.
    _ims("several high-rate publishers", "any number of them", SEVERAL, SNR),
)
