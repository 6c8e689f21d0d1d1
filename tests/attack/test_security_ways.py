"""Ways around a rule that denies, and what is left to somebody whose role was taken away."""

import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.settings import Durability
from octopis.client.client import Client
from octopis.client.moving import Move
from octopis.core.routing import Algorithm
from octopis.core.wire.frames import FrameKind
from octopis.core.wire.greeting import ClientHello, Welcome, decode_answer, encode_hello
from octopis.core.wire.login import Token
from octopis.errors import InvalidFilter, NotPermitted, OctopisError
from support.live import Brokers, line, ready, run_live, until
from support.secure import Folder, client_as
from support.strangers import dials, stranger

SCOT = line(2)
A, B = SCOT.brokers
ROLES = """
[roles.all]
publish = "TRUE"
subscribe = "TRUE"
durable = true
status = true
[roles.reader]
publish = "TRUE"
deny_publish = "kind = 'order'"
subscribe = "TRUE"
deny_subscribe = "secret = TRUE OR level > 3"
durable = true
[roles.more]
subscribe = "TRUE"
"""
USERS = """
[users.alice]
roles = ["all"]
[users.carol]
roles = [{roles}]
"""
OPEN = {"kind": "news", "secret": False, "level": 1}
HIDDEN: list[dict[str, Any]] = [
    {"kind": "news", "secret": True, "level": 1, "n": 1},
    {"kind": "news", "secret": False, "level": 4, "n": 2},
    {"kind": "news", "secret": True, "n": 3},
    {"kind": "news", "level": 9.5, "n": 4},
    {"kind": "news", "n": 5},  # UNKNOWN whether it is denied: refused
    {"kind": "news", "secret": False, "n": 6},
    {"kind": "news", "secret": "TRUE", "level": 1, "n": 7},  # of another type: UNKNOWN
    {"kind": "news", "secret": False, "level": "1", "n": 8},
]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    found = Folder(tmp_path / "security", SCOT)
    found.say(ROLES + USERS.format(roles='"reader", "more"'))
    return found


def with_disks(folder: Folder, work: Callable[[Brokers], Any]) -> None:
    durability = Durability(str(folder.path / "disk"))
    options = {"algorithm": Algorithm.TNR, "durability": durability}

    async def whole() -> None:
        async with ready(folder.overlay(SCOT, **options)) as live:
            await work(live)

    run_live(whole())


ASKED = {
    "everything": "TRUE",
    "NOT": "NOT (secret = FALSE)",
    "NOT of NOT": "NOT (NOT (secret = TRUE))",
    "what is denied": "secret = TRUE",
    "an absent attribute": "secret IS NULL OR level IS NULL",
    "a present attribute": "n IS NOT NULL",
    "OR": "n > 0 OR TRUE",
    "types": "level = '1' OR secret = 'TRUE' OR level > 3.5",
}
BROKEN_OUT = "x = 1) OR (TRUE"
"""What would leave its brackets, were filters put together as text."""


async def live_seen(carol: Client, alice: Client) -> dict[str, list[object]]:
    """Return what comes of each subscription, all at once: every path that there is is open."""
    async with AsyncExitStack() as stack:
        streams = {
            what: await stack.enter_async_context(carol.subscribe(f"({asked}) OR last = 1"))
            for what, asked in ASKED.items()
        }
        await carol.settled()
        await alice.publish_many([*HIDDEN, OPEN, {**OPEN, "last": 1}])
        found: dict[str, list[object]] = {}
        for what, stream in streams.items():
            found[what] = []
            while (one := (await anext(stream)).attributes).get("last") is None:
                found[what].append(one)
        return found


async def durable_seen(
    opener: Client, alice: Client, readers: Callable[[str], Any], reads: int
) -> dict[str, list[object]]:
    """Return what is read, again and again, of durable subscriptions."""
    for what, asked in ASKED.items():
        await opener.open_durable(what, asked)
    await opener.settled()
    await alice.publish_many([*HIDDEN, OPEN])
    await until_read(opener)
    found: dict[str, list[object]] = {}
    for what in ASKED:
        reader = await readers(what)
        found[what] = []
        for _ in range(reads):
            batch = await reader.read(what, 0)
            found[what] += [each.attributes for each in batch.notifications]
    return found


async def until_read(client: Client) -> None:
    """Wait until what was published has come to the disk."""
    batch = await client.read("everything", 0, wait_s=10)
    assert batch.notifications


@pytest.mark.parametrize("path", ["live, many subscriptions", "durable", "replay", "move"])
def test_queue_like_path_around_a_deny_rule(folder: Folder, path: str):
    """Whatever is asked for in whichever way: what is denied to carol does not come to her."""

    async def work(live: Brokers) -> None:
        async with (
            client_as(live[A], folder.by_certificate()) as alice,
            client_as(live[B], folder.by_token()) as carol,
            client_as(live[A], folder.by_token()) as there,
        ):
            with pytest.raises(InvalidFilter):
                carol.subscribe(BROKEN_OUT)

            async def reader(name: str) -> Client:
                if path != "move":
                    return carol
                clients = {B.short: carol, A.short: there}
                [each async for each in Move(clients, name, A.short).run()]
                return there

            if path.startswith("live"):
                seen = await live_seen(carol, alice)
            else:
                seen = await durable_seen(carol, alice, reader, 2 if path == "replay" else 1)
            assert {what for what, found in seen.items() if found} == {"everything", "OR"}
            assert all(each == OPEN for found in seen.values() for each in found)

    with_disks(folder, work)


def test_what_was_kept_before_a_rule_is_not_read_after_it(folder: Folder):
    """A durable subscription is no queue that keeps what may not be seen any more."""

    async def work(live: Brokers) -> None:
        folder.say(ROLES + USERS.format(roles='"all"'))
        await until(lambda: "access_reloaded" in folder.audit(live[B]))
        async with client_as(live[A], folder.by_certificate()) as alice:
            async with client_as(live[B], folder.by_token()) as carol:
                await carol.open_durable("mine", "TRUE")
                await carol.settled()
                await alice.publish_many([*HIDDEN, OPEN])
                whole = await carol.read("mine", 0, wait_s=10)
                assert whole.notifications
                folder.say(ROLES + USERS.format(roles='"reader"'))
                await until(lambda: folder.audit(live[B]).count("access_reloaded") == 2)
            async with client_as(live[B], folder.by_token()) as carol:
                found, after = [], 0
                while after < len(HIDDEN) + 1:
                    batch = await carol.read("mine", after, wait_s=10)
                    found += [each.attributes for each in batch.notifications]
                    last = [each.position for each in batch.notifications]
                    after = last[-1] if last else after + batch.missing
                assert found == [OPEN]

    with_disks(folder, work)


def test_what_a_revoked_user_left_on_disk_is_dropped_by_name_also_at_a_later_start(folder: Folder):
    """Else nobody can: it fills the disk, and holds up whoever publishes."""
    revoked = "[revoked]\nusers = ['carol']\ndurables = ['carol/mine', 'carol/none']\n"

    async def work(live: Brokers) -> None:
        async with client_as(live[A], folder.by_certificate()) as alice:
            async with client_as(live[B], folder.by_token()) as carol:
                for name in ("mine", "other"):
                    await carol.open_durable(name, "TRUE")
                await carol.settled()
            await alice.open_durable("mine", "TRUE")
            folder.say(ROLES + USERS.format(roles='"all"') + revoked)
            disk = live[B].keeping
            assert disk is not None
            await until(lambda: disk.channels.durables.get("carol/mine") is None)
            assert disk.channels.durables.get("carol/other") is not None
            (dropped,) = [each for each in folder.audit(live[B]).splitlines() if "_dropped" in each]
            assert '"durable":"carol/mine"' in dropped
            await alice.publish({"kind": "news"})
            await until(lambda: disk.channels.durables.get("carol/other").end == 1)
            assert [each.name for each in await alice.durables()] == ["mine"]

    async def later(live: Brokers) -> None:
        disk = live[B].keeping
        assert disk is not None
        await until(lambda: disk.channels.durables.get("carol/other") is None)

    folder.say(ROLES + USERS.format(roles='"all"'))
    with_disks(folder, work)
    folder.say(ROLES + revoked.replace("mine", "other"))
    with_disks(folder, later)


PUBLISHED: dict[str, list[dict[str, Any]]] = {
    "what is denied": [{"kind": "order"}],
    "among others": [{"kind": "news"}, {"kind": "order"}, {"kind": "news"}],
    "without the attribute": [{"x": 1}],
    "of another type": [{"kind": True}],
}


@pytest.mark.parametrize("what", PUBLISHED)
@pytest.mark.parametrize("path", ["live", "staging"])
def test_publication_around_a_deny_rule(folder: Folder, path: str, what: str):
    """Denied or UNKNOWN, at once or staged and committed: nothing of the batch gets anywhere."""

    async def work(live: Brokers) -> None:
        async with (
            client_as(live[A], folder.by_certificate()) as alice,
            client_as(live[B], folder.by_token()) as carol,
            alice.subscribe("TRUE") as stream,
        ):
            await alice.settled()
            said = PUBLISHED[what]
            live_ones = path == "live"
            sent = carol.publish_many(said) if live_ones else carol.stage("q", 0, 0, 0, said)
            with pytest.raises(NotPermitted):
                await sent
            if path == "staging":
                with pytest.raises(OctopisError):
                    await carol.commit_staged("q", 0, [(0, 0, len(PUBLISHED[what]))])
            await carol.publish({"kind": "end"})
            assert (await anext(stream)).attributes == {"kind": "end"}

    with_disks(folder, work)


@pytest.mark.parametrize("what", ["narrower", "no roles", "gone", "revoked"])
def test_reconnect_after_a_role_was_taken_away(folder: Folder, what: str):
    """The session of before, with its token and its secret, is worth nothing."""
    after = {
        "narrower": ROLES + USERS.format(roles='"more"'),
        "no roles": ROLES + USERS.format(roles=""),
        "gone": ROLES + '[users.alice]\nroles = ["all"]\n',
        "revoked": ROLES + USERS.format(roles='"reader"') + '[revoked]\nusers = ["carol"]\n',
    }[what]

    async def hello(live: Brokers, session: str = "") -> Any:
        said = ClientHello(
            "app", 100, secret="s" * 32, session=session, login=Token(folder.token())
        )
        async with stranger(live[A].address, dials(folder)) as peer:
            await peer.send(encode_hello(said))
            frames = await peer.next_frames()
            answer = decode_answer(frames[0])
            if session and isinstance(answer, Welcome):
                assert FrameKind.DELIVER not in {each.kind for each in frames}
            return answer

    async def work(live: Brokers) -> None:
        before = await hello(live)  # the line breaks, and what comes for it waits
        await until(lambda: live[A].clients["carol/app"].is_kept)
        again = await hello(live, before.session)
        assert again.resumed, "as long as the role is what it was"
        await until(lambda: live[A].clients["carol/app"].is_kept)
        folder.say(after)
        await until(lambda: "carol/app" not in live[A].clients)
        answer = await hello(live, before.session)
        if what in {"narrower", "no roles"}:
            assert not answer.resumed
            assert answer.session != before.session
        else:
            assert answer.error == "LoginFailed"
        events = [json.loads(each)["event"] for each in folder.audit(live[A]).splitlines()]
        assert "roles_changed" in events

    with_disks(folder, work)
