"""Filters that are meant to take long, by a client that has logged in: others are unhurt."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from octopis.client.client import Client
from octopis.core.wire.client import SubscribeRequest, encode_request
from octopis.core.wire.frames import FrameKind
from octopis.errors import OctopisError
from support.bombs import BOMBS
from support.live import Brokers, line, ready, run_live
from support.secure import Folder, client_as
from support.strangers import logged_in

SCOT = line(2)
A, B = SCOT.brokers
LONG = "a" * 60_000
STILL_S = 1.0
"""So long may nothing move while a bomb is taken in; one that works takes minutes, or for ever."""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    found = Folder(tmp_path / "security", SCOT)
    found.say(
        '[roles.all]\npublish = "TRUE"\nsubscribe = "TRUE"\n'
        "[roles.held]\npublish = \"t LIKE '%a%' OR x > 0\"\nsubscribe = \"NOT (kind = 'secret')\"\n"
        '[users.alice]\nroles = ["all"]\n[users.carol]\nroles = ["held"]\n'
    )
    return found


async def longest_s(client: Client, until_done: "asyncio.Future[object]") -> float:
    """Return the longest time that one publication took until something else was done."""
    found = 0.0
    while not until_done.done() or not found:
        began = time.perf_counter()
        await client.publish({"x": 1, "t": "b"})
        found = max(found, time.perf_counter() - began)
    return found


def beside(folder: Folder, attack: Callable[[Brokers], object]) -> None:
    """Run an attack while alice publishes at the same broker."""

    async def work() -> None:
        async with (
            ready(folder.overlay(SCOT)) as live,
            client_as(live[A], folder.by_certificate()) as alice,
            client_as(live[B], folder.by_certificate()) as reader,
            reader.subscribe("x > 0") as stream,
        ):
            await reader.settled()
            await alice.publish({"x": 1})
            attacking = asyncio.ensure_future(attack(live))  # type: ignore[arg-type]
            assert await longest_s(alice, attacking) < STILL_S
            await attacking
            await alice.publish({"x": 7})
            while (await anext(stream)).attributes["x"] != 7:
                pass

    run_live(work())


@pytest.mark.parametrize("part", range(4))
def test_parser_bombs_of_a_client_that_has_logged_in(folder: Folder, part: int):
    """Each is refused in words, or taken where it is harmless; its client stays."""

    async def attack(live: Brokers) -> None:
        async with logged_in(folder, live[A].address) as peer:
            for number, (text, dialect) in enumerate(list(BOMBS.values())[part::4], start=1):
                request = SubscribeRequest(number, number, f"s{number}", text, dialect, 0)
                await peer.send(encode_request(request))
                (frame, *_) = await peer.next_frames()
                assert frame.kind == FrameKind.ANSWERS
                assert len(frame.body) < 2_000  # what was said is not all said back

    beside(folder, attack)


def test_like_bombs_in_what_is_published_and_what_a_role_looks_at(folder: Folder):
    """Long texts for patterns that begin with %, as subscriptions and in carol's own role."""
    patterns = [f"t LIKE '%{'a' * n}%b%a'" for n in range(1, 20)]

    async def attack(live: Brokers) -> None:
        async with client_as(live[A], folder.by_token()) as carol:
            taken = []
            for each in patterns:
                stream = carol.subscribe(each)
                with suppress(OctopisError):
                    await stream.open()
                    taken.append(stream)
            assert taken
            for _ in range(20):
                await carol.publish({"t": LONG})
            for each in taken:
                await each.close()

    beside(folder, attack)
