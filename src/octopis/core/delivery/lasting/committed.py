"""Which batches were published: one that is committed again is known by it, in any later life.

A query may come back after weeks, and commit its last batch again: so its note stays for good, and
there is a bound on how many queries are remembered; one more is refused. Where a query has but one
batch, and nobody who could write it again, somebody may ask for that once more only while the
program lives that has committed it. Of these notes the latest stay. One that has gone makes no
batch be published twice: its rows are gone, too, and who asks is told so.
"""

from octopis.core.delivery.lasting.store import Store
from octopis.errors import InvalidNotification

QUERIES_MAX = 65_536
_KIND, _ONE_OFF = "committed", "committed once"
_BYTES = 8


class Committed:
    """The last batch that was published of each source."""

    def __init__(self, store: Store, sources_max: int) -> None:
        self._store = store
        self._max = sources_max
        self._lasts = {
            bytes.fromhex(source): int.from_bytes(value, "big")
            for source, value in store.items(_KIND).items()
        }
        noted = [
            (int.from_bytes(value[_BYTES:], "big"), bytes.fromhex(source), value[:_BYTES])
            for source, value in store.items(_ONE_OFF).items()
        ]
        self._one_offs = {
            source: int.from_bytes(value, "big") for _, source, value in sorted(noted)
        }
        self._number = max((number for number, _, _ in noted), default=0)

    def has(self, source: bytes, batch: int) -> bool:
        """Tell whether a batch, or a later one of the same source, was published."""
        return batch <= max(self._lasts.get(source, -1), self._one_offs.get(source, -1))

    def check(self, source: bytes) -> None:
        """Raise InvalidNotification where one more source would be remembered than may be."""
        if source not in self._lasts and len(self._lasts) >= self._max:
            raise InvalidNotification(
                f"this broker remembers {self._max:,} queries that publish batches, and no more: "
                "it would not know which batches of another were published. Raise "
                "durability.queries_max and restart it, or write to another broker"
            )

    def note(self, source: bytes, batch: int, *, is_one_off: bool) -> None:
        """Note that a batch was published; of one-off batches the oldest is forgotten."""
        if self.has(source, batch):
            return
        value = batch.to_bytes(_BYTES, "big")
        if not is_one_off:
            self._lasts[source] = batch
            self._store.put(_KIND, source.hex(), value)
            return
        self._number += 1
        self._one_offs[source] = batch
        self._store.put(_ONE_OFF, source.hex(), value + self._number.to_bytes(_BYTES, "big"))
        while len(self._one_offs) > self._max:
            oldest = next(iter(self._one_offs))
            del self._one_offs[oldest]
            self._store.delete(_ONE_OFF, oldest.hex())
