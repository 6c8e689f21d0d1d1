"""Batches that are published once or not at all: staged in parts, by whoever, and then committed.

A streaming query writes like this: its tasks stage the rows of a batch, perhaps in several attempts
of which some fail, and its driver commits those attempts that count. What was committed is known at
the broker for good: committing the same batch again publishes nothing. Of batches that are the only
ones of their queries (`one_off`) the latest are known, 65,536 by default.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from octopis.client.durable import DurableClient
from octopis.client.publishing import CHUNK_BYTES, Publication
from octopis.core.wire.durable import CommitStaged, DropStaged, StageRows
from octopis.core.wire.published import PUBLISH_MAX, array_of
from octopis.errors import ConnectionLost


class StagingClient(DurableClient):
    """What a client does with batches. All of it must go to one broker, which has a disk."""

    @abstractmethod
    def _encoded(self, publication: Publication) -> bytes:
        """Return a publication as it goes over the wire, or raise InvalidNotification."""

    async def stage(
        self,
        query: str,
        batch: int,
        part: int,
        attempt: int,
        publications: Iterable[Publication],
    ) -> int:
        """Keep the rows of an attempt at a part of a batch on disk; return how many they are.

        Nobody gets them before `commit_staged`. The number of an attempt stands for its rows: with
        other rows it is another attempt. They are numbered as they are staged: parts that are
        committed in the same order come in the order of their numbers.
        """
        staged, size = 0, 0
        chunk: list[bytes] = []
        about = query, batch, part, attempt
        for publication in publications:
            chunk.append(self._encoded(publication))
            size += len(chunk[-1])
            if size >= CHUNK_BYTES or len(chunk) >= PUBLISH_MAX:
                await self._ask_again(StageRows, *about, staged, array_of(chunk))
                staged += len(chunk)
                chunk, size = [], 0
        if chunk:
            await self._ask_again(StageRows, *about, staged, array_of(chunk))
        return staged + len(chunk)

    async def commit_staged(
        self,
        query: str,
        batch: int,
        attempts: Sequence[tuple[int, int, int]],
        *,
        one_off: bool = False,
    ) -> None:
        """Publish a batch once: of each part this attempt, which has so many rows.

        Returns when all is accepted; at once, where the batch was committed before. Raises
        InvalidNotification where rows are not at this broker, StoreDamaged where its disk has
        damaged some, and StoreFull where a hundred wait for the same batch already.
        """
        await self._ask_again(CommitStaged, query, batch, list(attempts), one_off)

    async def drop_staged(
        self, query: str, batch: int, attempts: Sequence[tuple[int, int]]
    ) -> None:
        """Forget attempts, by part and number: their batch has failed."""
        await self._ask_again(DropStaged, query, batch, list(attempts))

    async def _ask_again(self, request: type[Any], *facts: object) -> None:
        """Ask until there is an answer: it does no harm to ask twice."""
        while True:
            try:
                await self.ask_durable(request, *facts)
            except ConnectionLost:
                continue  # `ask_durable` waits for the next connection, or says that there is none
            return
