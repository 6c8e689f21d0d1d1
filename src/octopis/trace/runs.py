"""A run on disk: one folder, or that of a live overlay, in which each broker has left its own.

What many brokers have left is one run: counts are added up, and times are from the first to begin
until the last to end.
"""

from collections import Counter
from pathlib import Path

import msgspec

from octopis.errors import InvalidConfiguration
from octopis.trace.summary import FILE, RunSummary, read_summary

_COUNTS = (
    "brokers",
    "subscriptions",
    "notifications",
    "deliveries",
    "deliveries_lost",
    "subscription_ims",
    "subscription_duplicates",
    "notification_ims",
    "sync_ims",
)
_SAME = ("source", "algorithm", "level", "scenario", "scenario_digest", "seed", "version")


def parts_of(trace: Path) -> list[Path]:
    """Return the folders that hold a trace's tables: one, or one of each broker that has finished.

    Raises InvalidConfiguration where there is no finished trace.
    """
    if (trace / FILE).exists():
        return [trace]
    parts = sorted(path.parent for path in trace.glob(f"*/{FILE}"))
    if not parts:
        raise InvalidConfiguration(f"{trace} holds no finished trace: no {FILE}")
    return parts


def run_summary(trace: Path) -> RunSummary:
    """Return the summary of a run, of all its brokers together.

    A broker that was killed leaves no summary: the run is then partial. Raises
    InvalidConfiguration where there is no finished trace, or those of several runs.
    """
    parts = parts_of(trace)
    if parts == [trace]:
        return read_summary(trace)
    summaries = [read_summary(part) for part in parts]
    for part, summary in zip(parts, summaries, strict=True):
        if summary.broker is msgspec.UNSET:
            raise InvalidConfiguration(
                f"{trace} holds runs, and is none itself: name them one by one, as {part}"
            )
        for fact in _SAME:
            if getattr(summary, fact) != getattr(summaries[0], fact):
                raise InvalidConfiguration(
                    f"{parts[0]} and {part} are not of one run: they differ in {fact}"
                )
    return _together(summaries, _unfinished(trace, parts))


def _unfinished(trace: Path, parts: list[Path]) -> list[str]:
    """Return the brokers that began to write tables and did not finish."""
    begun = {path.parent for path in trace.glob("*/*.parquet")}
    return sorted(part.name for part in begun.difference(parts))


def _together(summaries: list[RunSummary], unfinished: list[str]) -> RunSummary:
    cases: Counter[str] = Counter()
    for each in summaries:
        cases.update(each.dnr_cases)
    reasons = [each.reason for each in summaries if each.reason]
    reasons += [f"{broker} did not finish its trace" for broker in unfinished]
    is_whole = not reasons and all(each.state == "complete" for each in summaries)
    return msgspec.structs.replace(
        summaries[0],
        broker=msgspec.UNSET,
        state="complete" if is_whole else "partial",
        reason="; ".join(reasons),
        begin_ns=min(each.begin_ns for each in summaries),
        end_ns=max(each.end_ns for each in summaries),
        dnr_cases=dict(sorted(cases.items())),
        queue_length_max=max(each.queue_length_max for each in summaries),
        input_wait_max_ns=max(each.input_wait_max_ns for each in summaries),
        queue_bounds=[bound for each in summaries for bound in each.queue_bounds],
        **{name: sum(getattr(each, name) for each in summaries) for name in _COUNTS},
    )
