"""Rows of batches that a disk has damaged: their batch fails with a word, and all others go on."""

import logging
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.broker import LiveBroker
from octopis.broker.settings import Durability
from octopis.core.routing import Algorithm
from octopis.core.wire.durable import StageRows
from octopis.core.wire.published import array_of
from octopis.errors import InvalidNotification, StoreDamaged
from support.live import client_of, line, overlay, ready, run_live

(A,) = line(1).brokers
KNOWN = "known"
PIECE = 1_000
"""So many rows are one record."""


def on_disk(folder: Path) -> Any:
    return overlay(line(1), Algorithm.TNR, durability=Durability(str(folder)))


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"n": number, "t": f"<{number}>"} for number in range(first, first + count)]


def flip_a_bit(folder: Path, text: bytes) -> None:
    """Change a bit of a record that is known by a text in it."""
    for path in (folder / "a,0").glob("*.log"):
        data = bytearray(path.read_bytes())
        place = data.find(text)
        if place >= 0:
            with path.open("r+b") as file:
                file.seek(place)
                file.write(bytes([data[place] ^ 1]))
            return
    raise AssertionError(f"{text!r} is nowhere in {folder}")


async def stage_in_pieces(client: Any, query: str, attempt: int, count: int) -> None:
    """Stage a batch of one part, of which each piece is one record on disk."""
    for first in range(0, count, PIECE):
        piece = array_of([client._encoded(each) for each in rows(PIECE, first)])
        await client.ask_durable(StageRows, query, 0, 0, attempt, first, piece)


async def published(client: Any) -> list[int]:
    found: list[int] = []
    end = (await client.read("all", 0)).end
    while len(found) < end:
        batch = await client.read("all", len(found))
        found += [each.attributes["n"] for each in batch.notifications]
    return found


def staging_of(broker: LiveBroker) -> Any:
    assert broker.keeping is not None
    return broker.keeping.channels.staging


def test_a_batch_with_damaged_rows_fails_alone_and_is_published_once_when_it_is_written_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live, client_of(live[A], secret=KNOWN) as client:
            async with client.subscribe("n >= 0", durable="all", acks="manual"):
                pass
            await stage_in_pieces(client, "q", 0, 3_000)
            await client.stage("p", 0, 0, 0, rows(10, 5_000))
            flip_a_bit(tmp_path, b"<1500>")
            with pytest.raises(StoreDamaged, match=r"rows 1,001 to 2,000 of the 3,000 of batch 0"):
                await client.commit_staged("q", 0, [(0, 0, 3_000)])
            assert await published(client) == list(range(1_000))
            await client.commit_staged("p", 0, [(0, 0, 10)])
            with pytest.raises(InvalidNotification, match=r"0 of 3,000 rows .* write the batch"):
                await client.commit_staged("q", 0, [(0, 0, 3_000)])
            await stage_in_pieces(client, "q", 1, 3_000)
            await client.commit_staged("q", 0, [(0, 1, 3_000)])
            others = list(range(5_000, 5_010))
            expected = [*range(1_000), *others, *range(1_000, 3_000)]
            assert await published(client) == expected
            assert staging_of(live[A]).bytes == 0
            assert (await client.status())["store"]["damages"] == 1

    run_live(work())
    assert "1,000 rows are published. Write the batch again" in caplog.text


def test_a_decided_batch_with_damaged_rows_is_not_published_short_after_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR)

    async def die_in_the_middle() -> None:
        async with ready(on_disk(tmp_path)) as live, client_of(live[A], secret=KNOWN) as client:
            async with client.subscribe("n >= 0", durable="all", acks="manual"):
                pass
            await stage_in_pieces(client, "q", 0, 3_000)
            committing, staging = live[A].committing, staging_of(live[A])
            assert committing is not None
            committing.go_on = lambda: None  # type: ignore[method-assign]
            (attempt,) = staging._rows
            commit = staging.decide(attempt.source, 0, [(0, 0, 3_000)])
            committing._publish(commit)
            assert commit.done == 1_000

    async def go_on() -> None:
        async with ready(on_disk(tmp_path)) as live, client_of(live[A], secret=KNOWN) as client:
            with pytest.raises(InvalidNotification, match="1,000 of 3,000 rows of part 0"):
                await client.commit_staged("q", 0, [(0, 0, 3_000)])
            assert await published(client) == list(range(1_000))
            await stage_in_pieces(client, "q", 1, 3_000)
            await client.commit_staged("q", 0, [(0, 1, 3_000)])
            assert await published(client) == list(range(3_000))
            assert staging_of(live[A]).bytes == 0

    run_live(die_in_the_middle())
    flip_a_bit(tmp_path, b"<1500>")
    run_live(go_on())
    assert "of it only 1,000 of 3,000 rows of part 0 of batch 0 are not damaged" in caplog.text
