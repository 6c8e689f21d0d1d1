"""What the scene has shown: for the table of facts, in sentences, and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from octopis.demo.comparison import shown_ms
from octopis.demo.fault.cast import Cast
from octopis.demo.fault.record import BUCKET_S, FaultRecord, Gaps, Received
from octopis.errors import DeliveriesWrong

SCENE = "the scene with a killed broker"


@dataclass(frozen=True)
class FaultOutcome:
    """A broker was killed while notifications went through it; this came of it."""

    cast: Cast
    per_s: int
    published: int
    begin_s: float
    """When publishing began, in seconds from the kill on: below 0."""

    back_s: float
    whole_s: float
    """When the broker ran again, and when it knew every subscription again, from the kill on."""

    received: list[Received]
    around_fault: int
    passed_on: int
    rates_behind: list[int]
    rates_elsewhere: list[int]
    """Deliveries in each tenth of a second from `begin_s` on."""

    @property
    def due(self) -> int:
        """How many deliveries there should be."""
        return self.published * len(self.received)

    @property
    def lost(self) -> int:
        """How many never came."""
        return sum(len(each.lost_ns) for each in self.received)

    @property
    def twice(self) -> int:
        """How many came twice."""
        return sum(each.twice for each in self.received)

    @property
    def behind(self) -> list[Received]:
        """The subscribers whose shortest way led through the broker."""
        return [each for each in self.received if each.is_behind]

    @property
    def gaps_behind(self) -> Gaps:
        """The longest gaps at anyone of them."""
        return Gaps(*map(max, zip(*(each.gaps for each in self.behind), strict=True)))

    @property
    def faults(self) -> dict[str, int]:
        """What may not happen, and how often it did."""
        counts = {
            "delivered twice": self.twice,
            "lost that the kill does not explain": sum(e.lost_elsewhere for e in self.received),
            "subscribers whose deliveries stopped": sum(e.has_stopped for e in self.received),
        }
        return {name: count for name, count in counts.items() if count}

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "algorithm": "tnr",
            "killed": self.cast.victim.short,
            "publisher": self.cast.host.short,
            "published": self.published,
            "published_per_s": self.per_s,
            "due": self.due,
            "delivered": sum(each.delivered for each in self.received),
            "lost": self.lost,
            "twice": self.twice,
            "longest_gap_behind_ms": self.gaps_behind.document(),
            "sent_around_fault": self.around_fault,
            "back_after_s": self.back_s,
            "table_whole_after_s": self.whole_s,
            "passed_on_since": self.passed_on,
            "cut_off_by_snr": [each.short for each in self.cast.cut_off_by_snr],
            "subscribers": [_subscriber(each) for each in self.received],
            "deliveries_over_time": {
                "begin_s": self.begin_s,
                "every_s": BUCKET_S,
                "behind": self.rates_behind,
                "elsewhere": self.rates_elsewhere,
            },
        }


def _subscriber(each: Received) -> dict[str, Any]:
    return {
        "broker": each.subscriber.short,
        "behind": each.is_behind,
        "delivered": each.delivered,
        "lost": len(each.lost_ns),
        "twice": each.twice,
        "longest_gap_ms": each.gaps.document(),
    }


def outcome_of(record: FaultRecord, per_s: int) -> FaultOutcome:
    """Return what a scene has shown that is over, with the broker back."""
    cast, killed_ns = record.cast, record.killed_ns
    # A tenth of a second begins at the kill, so that what was before it is apart from the rest.
    tenths = int((killed_ns - record.begin_ns) / 1e9 / BUCKET_S)
    since_ns = killed_ns - round(tenths * BUCKET_S * 1e9)
    until_ns = record.published_ns[-1]
    elsewhere = [each for each in cast.subscribers if each not in cast.behind]
    return FaultOutcome(
        cast=cast,
        per_s=per_s,
        published=len(record.published_ns),
        begin_s=round(-tenths * BUCKET_S, 3),
        back_s=round((record.back_ns - killed_ns) / 1e9, 3),
        whole_s=round((record.whole_ns - killed_ns) / 1e9, 3),
        received=record.received(),
        around_fault=record.around_fault,
        passed_on=record.passed_on,
        rates_behind=record.rates(cast.behind, since_ns, until_ns),
        rates_elsewhere=record.rates(elsewhere, since_ns, until_ns),
    )


def check_went_on(outcome: FaultOutcome) -> None:
    """Raise DeliveriesWrong where anything came twice, or deliveries did not go on."""
    if outcome.faults:
        raise DeliveriesWrong(SCENE, outcome.faults)


def fault_findings(outcome: FaultOutcome) -> list[str]:
    """Return what the numbers say, in sentences; nothing that they do not say."""
    behind, everybody = len(outcome.behind), len(outcome.received)
    sentences = [
        f"{outcome.cast.victim} was killed while {outcome.per_s:,} notifications a second went "
        f"through the overlay under TNR; the way to {behind} of {everybody} subscribers led "
        f"through it."
    ]
    if not outcome.faults:
        before, dead, back = map(shown_ms, outcome.gaps_behind)
        sentences.append(
            f"Nothing stopped: behind the broker, the longest gap between two deliveries was "
            f"{dead} while it was dead and {back} after that ({before} before the kill)."
        )
    sentences += [
        _losses(outcome),
        f"The overlay started the broker again by itself: it ran after {outcome.back_s:.1f} s, "
        f"knew all {everybody} subscriptions after {outcome.whole_s:.1f} s, and has passed on "
        f"{outcome.passed_on:,} messages since.",
    ]
    if cut_off := outcome.cast.cut_off_by_snr:
        names = " and ".join(map(str, cut_off))
        sentences.append(
            f"SNR, says the routing core, sends what is for {names} to the dead broker all the "
            "same: nothing would come there until it is back."
        )
    return sentences


def _losses(outcome: FaultOutcome) -> str:
    twice = f"{outcome.twice:,} came twice" if outcome.twice else "none came twice"
    if not outcome.lost:
        return f"Of {outcome.due:,} deliveries none was lost, and {twice}."
    return (
        f"Of {outcome.due:,} deliveries {outcome.lost:,} {'were' if outcome.lost > 1 else 'was'} "
        f"lost, and {twice}{_when_lost(outcome.received)}."
    )


def _when_lost(received: Sequence[Received]) -> str:
    """Say how near to the kill everything was published that was lost."""
    farthest_ms = max(abs(each) for found in received for each in found.lost_ns) / 1e6
    return f"; all that was lost was published within {shown_ms(farthest_ms)} of the kill"
