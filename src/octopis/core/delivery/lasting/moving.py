"""Moves of durable subscriptions, at the host that one leaves and at the host that it joins.

While both hosts subscribe it, what matches goes to both, with one number of one stream. The old
host keeps it as ever; the new one keeps it apart, in an annex. When everybody sends to both, and
all that was sent to the old host alone has arrived there, it leaves the old host. That fixes a
*cut*: up to which number the old host has taken each stream in. All up to the cut is there, in its
order and at its positions, or was acknowledged; nothing behind the cut is there. So the new host
takes a copy of all positions, and behind them what is in the annex and behind the cut. A
publisher's notifications come on one stream, in order, and the old host has a beginning of them:
they stay in order. The new host remembers the cut: what is not behind it may still be on its way to
it long after the move.

Copies say which position of the annex they were, and the log is written before what else is known.
So whatever is cut off by a crash is done again, and nothing of it twice.
"""

from collections.abc import Sequence

from octopis.core.delivery.lasting.durables import Durable, Durables
from octopis.core.delivery.lasting.records import (
    Arrival,
    Copy,
    DurableState,
    Policy,
    Publication,
    Record,
)
from octopis.core.delivery.lasting.store import Shelf


class Moves:
    """What moves to and from one host; `origin` is its own stream."""

    def __init__(self, durables: Durables, shelf: Shelf, origin: int) -> None:
        self._durables = durables
        self._shelf = shelf
        self._origin = origin

    # At the host that it leaves

    def leave(self, durable: Durable, to: str, cut: dict[int, int]) -> None:
        """Keep nothing more for one; the overlay is to know it when that is on disk.

        Else a crash could bring it back, with a hole. What it brought along itself counts, too.
        """
        for origin, number in (durable.state.cut or {}).items():
            cut[origin] = max(number, cut.get(origin, 0))
        self._durables.change(durable, moved_to=to, cut=cut, until=durable.next - 1)

    # At the host that it joins

    def join(self, state: DurableState) -> Durable:
        """Begin to keep what matches one that is on its way here."""
        durable = self._durables.make(state)
        self._durables.annex(durable)
        return durable

    def begin(  # noqa: PLR0913, PLR0917 - all that is known of it where it was
        self,
        durable: Durable,
        acked: int,
        until: int,
        dropped: int,
        policy: Policy,
        cut: dict[int, int],
    ) -> None:
        """Take over where one has left its last host: it has positions after `acked` there."""
        durable.begin_at(acked + 1)
        about = {"acked": acked, "until": until, "dropped": dropped, "policy": policy, "cut": cut}
        self._durables.change(durable, **about)

    def copy(
        self, durable: Durable, positions: Sequence[int], bodies: Sequence[bytes], upto: int
    ) -> None:
        """Take over what one has at positions, all of them up to `upto`; what is here stays."""
        key = durable.state.key
        for position, body in zip(positions, bodies, strict=True):
            if position < durable.next:
                continue
            durable.lack_up_to(position - 1)
            durable.add(self._shelf.add(Copy(0, (key, position), body), 1), len(body))
        durable.lack_up_to(upto)
        self._durables.write(durable)

    def merge(self, durable: Durable, count: int) -> int:
        """Take over so many of what has come meanwhile; return how many are left.

        When none is left it lives here: what comes next is kept with the rest.
        """
        annex = self._durables.annexes[durable.state.name]
        upto = min(annex.next - 1, annex.state.acked + count)
        there = [(each, annex.where(each)) for each in range(annex.first, upto + 1)]
        there = [pair for pair in there if pair[1]]  # what is damaged is lost
        records = self._shelf.read_whole([where for _, where in there])
        for (position, _), record in zip(there, records, strict=True):
            if record is not None and not self._was_taken(durable, record):
                self._append(durable, position, record)
        self._durables.acknowledge(annex, upto, annex.state.used_ns)
        self._durables.await_sync([durable], self._shelf.store.ticket)
        left = annex.next - 1 - upto
        if not left:
            self._durables.drop_annex(durable)
            self._durables.change(durable, joins=False, until=0)
        return left

    def _append(self, durable: Durable, annexed: int, record: Record) -> None:
        assert isinstance(record, Arrival | Publication), "an annex keeps what comes"
        copy = Copy(annexed, (durable.state.key, durable.next), record.body)
        durable.add(self._shelf.add(copy, 1), len(record.body))

    def _was_taken(self, durable: Durable, record: Record) -> bool:
        """Tell whether the host that it left has taken a notification in.

        What was published here, and has no number, went nowhere else.
        """
        assert durable.state.cut is not None, "that is known when it has left"
        if isinstance(record, Arrival):
            return record.number <= durable.state.cut.get(record.origin, 0)
        assert isinstance(record, Publication), "an annex keeps what comes"
        return 0 < record.number <= durable.state.cut.get(self._origin, 0)
