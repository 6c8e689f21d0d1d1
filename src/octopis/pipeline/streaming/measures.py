"""What a query's progress says of its sources, with words for the numbers."""

from typing import Any

import msgspec


class SourceProgress(msgspec.Struct, frozen=True):
    """How far a query has come with one durable subscription.

    `read` is the last position of the last batch. `committed` is what the broker has released: it
    lags one batch behind, as Spark says only with the next batch that one is finished. `end` is the
    last position that there was. `bytes` wait at the broker, read or not. `dropped` were lost at
    the broker's quota since the subscription was made.

    `lost` were found missing when batches were planned, since this query was started; a
    subscription that was gone or made anew counts as one, since nobody knows what it had. `missing`
    are positions of the last batch that gave no row, whoever found that out, also a task: right
    where a query reads its source once.
    """

    subscription: str
    rows: int
    read: int
    committed: int
    end: int
    bytes: int
    dropped: int
    lost: int
    missing: int

    @property
    def behind(self) -> int:
        """How many the query has not read yet."""
        return self.end - self.read


class _Report(msgspec.Struct):
    subscription: str
    position: int
    committed: int = 0
    bytes: int = 0
    dropped: int = 0
    lost: int = 0
    after: int | None = None


def progress(query: Any) -> list[SourceProgress]:
    """Return the progress of each of our sources in a streaming query, as of its last batch.

    Spark shows the offsets of a source in Python as text, and has no place for measures of its own
    but in the latest offset: this puts them in order.
    """
    last = query.lastProgress
    found = []
    for source in last["sources"] if last is not None else ():
        try:
            end = msgspec.json.decode(source["endOffset"], type=_Report)
            report = msgspec.json.decode(source["latestOffset"], type=_Report)
        except (msgspec.DecodeError, TypeError):
            continue  # another kind of source
        about = report.committed, report.position, report.bytes, report.dropped, report.lost
        rows = source["numInputRows"]
        after = end.position - rows if report.after is None else report.after
        missing = max(0, end.position - after - rows)
        found.append(SourceProgress(end.subscription, rows, end.position, *about, missing))
    return found
