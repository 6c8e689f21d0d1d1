"""The client that knows nothing but the page on the wire, and that page's example, at a broker."""

import ast
import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from octopis.broker.broker import LiveBroker
from support.live import (
    LIMITS,
    client_of,
    line,
    overlay,
    raw_peer,
    ready,
    run_live,
    tables_hold,
    until,
)
from support.wire_page import conversation

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "plain_client.py"
LIVELY = replace(LIMITS, keepalive_s=0.1, silence_s=0.3)
VALUES = {
    "small": 5,
    "negative": -7,
    "medium": 300,
    "large": 2**40,
    "least": -(2**63),
    "float": -1.5e300,
    "yes": True,
    "no": False,
    "text": "grüße",
    "longer": "x" * 40,
    "long": "y" * 300,
    "longest": "z" * 65_535,
    "x": 1,
    **{f"more-{number}": number for number in range(10)},
}
"""Values in all forms that the broker's encoder has for them."""


@asynccontextmanager
async def plain(broker: LiveBroker, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    # -I and -S: with nothing but Python's own library.
    program = (sys.executable, "-I", "-S", str(PROGRAM), str(broker.address), *words)
    process = await asyncio.create_subprocess_exec(*program, stdout=PIPE, stderr=PIPE, limit=2**20)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def printed(process: asyncio.subprocess.Process) -> dict[str, object]:
    assert process.stdout is not None
    async with asyncio.timeout(10):
        found = await process.stdout.readline()
    return json.loads(found)


def test_plain_client_imports_nothing_but_pythons_own_library():
    tree = ast.parse(PROGRAM.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in found
        for alias in node.names
    }
    assert {str(name).partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_plain_client_publishes_receives_and_stays():
    async def work() -> None:
        scot = line(2)
        async with ready(overlay(scot, limits=LIVELY)) as live:
            here, there = live.values()
            wanted = ("x > 0 AND NOT late", "x=2.5", "late=false", "word=hello")
            async with plain(here, *wanted) as process, client_of(there) as writer:
                own = await printed(process)
                assert own["attributes"] == {"x": 2.5, "late": False, "word": "hello"}
                await tables_hold(live, 1)
                await writer.publish({**VALUES, "late": False}, payload=bytes(range(256)))
                got = await printed(process)
                assert got["attributes"] == {**VALUES, "late": False}
                assert b64decode(str(got["payload"])) == bytes(range(256))
                assert (got["publisher"], got["sequence"]) == (writer.id, 1)
                many = [{"x": number, "late": False} for number in range(1, 501)]
                await writer.publish_many(many)  # five times its window
                assert [(await printed(process))["attributes"] for _ in many] == many
                await asyncio.sleep(3 * LIVELY.silence_s)  # it answers pings meanwhile
                await writer.publish({"x": 7, "late": False})
                assert (await printed(process))["sequence"] == 502

    run_live(work())


def test_plain_client_says_why_it_is_refused():
    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            (broker,) = live.values()
            async with plain(broker, "price >") as process:
                assert process.stderr is not None
                said = (await process.stderr.read()).decode()
                assert await process.wait() == 1
            assert said.startswith("request 1 is refused: ")
            assert "column 8" in said

    run_live(work())


def test_broker_answers_the_example_of_the_page_byte_for_byte():
    page = (ROOT / "docs" / "wire.md").read_text(encoding="utf-8")

    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            (broker,) = live.values()
            async with raw_peer(broker) as peer:
                for said in conversation(page):
                    if said.by_client:
                        await peer.send(said.data)
                    else:
                        async with asyncio.timeout(5):
                            assert await peer._reader.readexactly(len(said.data)) == said.data
                assert [*broker.clients] == ["me"]
            await until(lambda: not broker.clients)

    run_live(work())
