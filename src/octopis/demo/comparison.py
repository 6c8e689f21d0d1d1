"""The rounds side by side: as rows of a table, and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from octopis.core.routing import Algorithm
from octopis.core.routing.messages import Reason
from octopis.demo.deliveries import RoundVerdict
from octopis.demo.pace import Pace
from octopis.demo.rounds import Round
from octopis.errors import DeliveriesWrong
from octopis.report.pictures import LOOKS

FACTS = (
    "deliveries due",
    "delivered",
    "lost",
    "delivered twice",
    "subscription IMs",
    "notification IMs",
    "delay, median",
    "delay, 99th percentile",
    "longest queue",
    "notifications over the slowed link",
    "copies sent around overload",
)
"""What is compared, in the order of the table."""

MUST_BE_NONE = frozenset(FACTS[2:4])

_AROUND = frozenset(
    each.value
    for each in (
        Reason.CASE_I,
        Reason.CASE_II,
        Reason.CASE_III,
        Reason.AROUND_OVERLOAD,
        Reason.AROUND_FAULT,
    )
)


@dataclass(frozen=True)
class Compared:
    """One round, measured and checked."""

    algorithm: Algorithm
    verdict: RoundVerdict
    subscription_ims: int
    notification_ims: int
    longest_queue: int
    longest_link: str
    over_slowed: int
    cases: dict[str, int]
    """DNR's cases; TNR's copies by reason; nothing under the others."""

    publishers_waited: bool
    pace: Pace

    @property
    def troubles(self) -> list[str]:
        """Why the round says nothing about routing, if it does not.

        Publishers that had to wait for a queue are late for a reason of the overlay's own.
        """
        return [] if self.publishers_waited else self.pace.troubles

    @property
    def label(self) -> str:
        """The algorithm's name."""
        return LOOKS[self.algorithm].label

    @property
    def sent_around(self) -> int:
        """How many copies did not take the shortest way, because it was overloaded."""
        return sum(went_around(self.cases).values())

    def cells(self) -> tuple[int | str, ...]:
        """Return what is to be said to each of FACTS."""
        verdict = self.verdict
        return (
            verdict.due,
            verdict.delivered,
            verdict.lost,
            verdict.twice,
            self.subscription_ims,
            self.notification_ims,
            shown_ms(verdict.delay_median_ms),
            shown_ms(verdict.delay_p99_ms),
            self.longest_queue,
            self.over_slowed,
            self.sent_around,
        )

    def document(self) -> dict[str, Any]:
        """Return the same and more, for JSON."""
        verdict = self.verdict
        return {
            "algorithm": self.algorithm.value,
            "due": verdict.due,
            "delivered": verdict.delivered,
            "lost": verdict.lost,
            "twice": verdict.twice,
            "unasked": verdict.unasked,
            "overtaken": verdict.overtaken,
            "subscription_ims": self.subscription_ims,
            "notification_ims": self.notification_ims,
            "delay_ms": {"median": verdict.delay_median_ms, "p99": verdict.delay_p99_ms},
            "longest_queue": {"link": self.longest_link, "length": self.longest_queue},
            "over_slowed_link": self.over_slowed,
            "sent_around": self.sent_around,
            "cases": self.cases,
            "publishers_waited": self.publishers_waited,
            "pace": self.pace.document(),
        }


def compared(rounds: Sequence[Round], verdicts: Mapping[Algorithm, RoundVerdict]) -> list[Compared]:
    """Return the rounds with what the ground truth says of them."""
    return [
        Compared(
            each.algorithm,
            verdicts[each.algorithm],
            each.played.counters["subscription_ims"],
            each.played.counters["notification_ims"],
            each.longest_queue,
            each.longest_link,
            each.over_slowed,
            each.cases,
            each.publishers_waited,
            each.pace,
        )
        for each in rounds
    ]


def check_faultless(rows: Sequence[Compared]) -> None:
    """Raise DeliveriesWrong where anything was lost, came twice or was not asked for."""
    for row in rows:
        if row.verdict.faults:
            raise DeliveriesWrong(f"the round under {row.label}", row.verdict.faults)


def cautions(rows: Sequence[Compared]) -> list[str]:
    """Say where the machine did not keep pace, and what follows from that."""
    troubled = [f"under {row.label} {' and '.join(row.troubles)}" for row in rows if row.troubles]
    if not troubled:
        return []
    return [
        f"This machine was too busy for a comparison: {'; '.join(troubled)}. The delays and "
        "queues are those of a machine that could not keep up, and say nothing about routing. Run "
        "it again when less else is running."
    ]


def findings(rows: Sequence[Compared]) -> list[str]:
    """Return what the numbers say, in sentences; nothing that they do not say.

    Where the machine did not keep pace, only what was delivered can be judged.
    """
    by = {row.algorithm: row for row in rows}
    snr, bid, tnr = (by[each] for each in (Algorithm.SNR, Algorithm.BID, Algorithm.TNR))
    dynamic = [by[Algorithm.DNR], tnr]
    sentences = []
    if not any(row.verdict.faults for row in rows):
        sentences.append(
            f"All {snr.verdict.due:,} deliveries that the ground truth asks for came, once each, "
            "under every algorithm."
        )
    if cautions(rows):
        return sentences
    for row in dynamic:
        around = snr.over_slowed - row.over_slowed
        if around > 0 and row.sent_around:
            sentences.append(
                f"{row.label} led {around:,} of {snr.over_slowed:,} notifications around the "
                f"slowed link: its 99th percentile of delay is "
                f"{shown_ms(row.verdict.delay_p99_ms)}, "
                f"SNR's {shown_ms(snr.verdict.delay_p99_ms)}."
            )
    if tnr.notification_ims < min(snr.notification_ims, bid.notification_ims):
        sentences.append(
            f"For the same deliveries TNR needed {tnr.notification_ims:,} messages between "
            f"brokers, SNR {snr.notification_ims:,} and BID {bid.notification_ims:,}."
        )
    if overtaken := [row for row in dynamic if row.verdict.overtaken]:
        counts = " and ".join(f"under {row.label} {row.verdict.overtaken:,}" for row in overtaken)
        sentences.append(
            f"The price of going around is order: {counts} deliveries came after a later one of "
            "the same publisher."
        )
    if bid.over_slowed < snr.over_slowed / 2:
        sentences.append(
            f"BID's tree led past the slowed link ({bid.over_slowed:,} notifications went over "
            "it), by the luck of which flood came first: its delays say nothing about the link."
        )
    sentences += [
        f"Under {row.label} a queue passed its high-water mark, and publishers "
        "had to wait: without that it would have been longer."
        for row in rows
        if row.publishers_waited
    ]
    return sentences


def shown_ms(milliseconds: float | None) -> str:
    """Return a delay as people read it."""
    if milliseconds is None:
        return "-"
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:,.2f} s"
    return f"{milliseconds:,.1f} ms" if milliseconds < 100 else f"{milliseconds:,.0f} ms"


def went_around(cases: Mapping[str, int]) -> dict[str, int]:
    """Return those of the cases in which a copy took another way than the shortest."""
    return {name: count for name, count in cases.items() if name in _AROUND}


def shown_cases(cases: Mapping[str, int]) -> str:
    """Return how often each case came up, on one line."""
    return ", ".join(f"{name} {count:,}" for name, count in cases.items() if count) or "-"
