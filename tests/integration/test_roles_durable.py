"""What a client may do with durable subscriptions and batches, and what it may not any more."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.settings import Durability
from octopis.client.moving import Move
from octopis.core.routing import Algorithm
from octopis.core.wire.durable import OpenDurable, ReadDurable
from octopis.core.wire.moving import CopyDurable, LeaveDurable
from octopis.errors import InvalidNotification, InvalidSubscription, NotPermitted
from support.live import Brokers, line, overlay, ready, run_live, tables_hold, until
from support.roles import ALL, Roles, as_user, by_name, role

A, B, C = line(3).brokers
KNOWN = "known"
READER = role(subscribe="price < 1000", is_durable=True)
WRITER = role("kind = 'row'", is_durable=True)


def with_roles(work: Any, roles: Roles, folder: Path, regions: int = 2) -> None:
    """Run work(brokers with disks) with clients that are who their names say."""
    durability = Durability(str(folder))

    async def whole() -> None:
        with by_name(roles):
            async with ready(overlay(line(regions), Algorithm.TNR, durability=durability)) as live:
                await work(live)

    run_live(whole())


async def all_of(client: Any, name: str, upto: int) -> tuple[list[object], int]:
    """Read all up to a position; return prices, and how many were missing."""
    found: list[object] = []
    after = missing = 0
    while after < upto:
        batch = await client.read(name, after, wait_s=10)
        for each in batch.notifications:
            missing += each.position - after - 1
            after = each.position
            found.append(each.attributes["price"])
        if not batch.notifications:
            missing += batch.missing
            after += batch.missing
            assert batch.missing, "nothing is there, and nothing is said to be missing"
    return found, missing


async def opened(client: Any, name: str, text: str = "price > 0") -> None:
    async with client.subscribe(text, durable=name):
        await client.settled()


def test_it_gets_what_is_asked_for_and_allowed_and_is_listed_as_it_was_asked_for(tmp_path: Path):
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "all") as writer, as_user(live[B], "alice") as alice:
            await opened(alice, "risk")
            await writer.publish_many({"price": each} for each in (5, 5_000, 7))
            assert await all_of(alice, "risk", 2) == ([5, 7], 0)
            (info,) = await alice.durables()
            assert (info.name, info.filter, info.end) == ("risk", "price > 0", 2)
            await opened(alice, "risk")  # asks for the same
            with pytest.raises(InvalidSubscription) as refused:
                await opened(alice, "risk", "price > 1")
            assert "'risk' asks for 'price > 0'" in str(refused.value)

    with_roles(work, Roles(alice=READER, all=ALL), tmp_path)


def test_a_role_without_durable_may_do_nothing_with_them(tmp_path: Path):
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "plain") as plain:
            asks = [
                plain.open_durable("x"),
                plain.read("x", 0),
                plain.ack("x", 0, 0),
                plain.drop_durable("x"),
                plain.stage("q", 0, 0, 0, [{"price": 1}]),
                plain.commit_staged("q", 0, []),
                plain.drop_staged("q", 0, []),
                plain.ask_durable(LeaveDurable, "x", "b,0", 1),
                plain.ask_durable(CopyDurable, "x", 0),
            ]
            for ask in asks:
                with pytest.raises(NotPermitted, match="durable = true"):
                    await ask
            with pytest.raises(NotPermitted, match="may not see durable"):
                await plain.durables()
            await plain.publish({"price": 1})

    with_roles(work, Roles(plain=role("TRUE", "TRUE")), tmp_path, 1)


def test_nobody_reaches_what_is_anothers_not_even_as_shared(tmp_path: Path):
    async def work(live: Brokers) -> None:
        async with (
            as_user(live[A], "alice", secret=KNOWN) as alice,
            as_user(live[A], "bob", secret=KNOWN) as bob,
            as_user(live[A], "boss") as boss,
        ):
            await opened(alice, "risk")
            await opened(bob, "mine")
            for name in ("risk", "alice/risk", "../alice/risk"):
                for shared in (False, True):
                    asks = [
                        (ReadDurable, name, 0, 10, 0, shared),
                        (OpenDurable, name, None, "sql", None, shared),
                        (CopyDurable, name, 0, shared),
                        (LeaveDurable, name, "b,0", 1, shared),
                    ]
                    for request, *facts in asks:
                        with pytest.raises(InvalidSubscription, match="there is no durable"):
                            await bob.ask_durable(request, *facts)
                with pytest.raises(InvalidSubscription):
                    await bob.drop_durable(name)
            await opened(bob, "risk", "price = 1")  # one of his own
            assert {each.name for each in await bob.durables()} == {"mine", "risk"}
            assert [each.name for each in await alice.durables()] == ["risk"]
            assert {each.name for each in await boss.durables()} == {
                "alice/risk",
                "bob/mine",
                "bob/risk",
            }

    with_roles(work, Roles(alice=READER, bob=READER, boss=ALL), tmp_path)


def test_what_a_role_does_not_allow_any_more_is_withheld_on_disk_too_and_told(tmp_path: Path):
    roles = Roles(alice=READER, all=ALL)
    narrow = role(subscribe="price < 10", is_durable=True)

    async def before(live: Brokers) -> None:
        async with as_user(live[A], "all") as writer, as_user(live[B], "alice") as alice:
            await opened(alice, "risk")
            await writer.publish_many({"price": each} for each in (1, 500, 2, 600, 700))
            assert await all_of(alice, "risk", 5) == ([1, 500, 2, 600, 700], 0)
            await roles.changed(live, alice=narrow)
            assert await all_of(alice, "risk", 5) == ([1, 2], 3)
            info = await alice.open_durable("risk")
            await alice.settled()
            assert (info.filter, info.end) == ("price > 0", 5)
            await writer.publish_many({"price": each} for each in (3, 800, 4))
            assert await all_of(alice, "risk", 7) == ([1, 2, 3, 4], 3)

    with_roles(before, roles, tmp_path)

    async def after(live: Brokers) -> None:
        async with as_user(live[A], "all") as writer, as_user(live[B], "alice") as alice:
            assert await all_of(alice, "risk", 7) == ([1, 2, 3, 4], 3)
            await writer.publish_many({"price": each} for each in (900, 5))
            assert await all_of(alice, "risk", 8) == ([1, 2, 3, 4, 5], 3)
            await roles.changed(live, alice=READER)
            await opened(alice, "risk")
            await writer.publish_many([{"price": 901}])
            assert await all_of(alice, "risk", 9) == ([1, 500, 2, 600, 700, 3, 4, 5, 901], 0)

    with_roles(after, roles, tmp_path)


def test_a_stream_goes_on_under_a_narrower_role_with_a_gap(tmp_path: Path):
    roles = Roles(alice=READER, all=ALL)

    async def work(live: Brokers) -> None:
        gaps = []
        async with as_user(live[A], "all") as writer, as_user(live[B], "alice") as alice:
            stream = alice.subscribe("price > 0", durable="risk", on_gap=gaps.append)
            async with stream:
                await alice.settled()
                await writer.publish_many({"price": each} for each in (1, 500))
                assert (await anext(stream)).attributes == {"price": 1}
                stream._buffer.clear()  # as if it had not been sent yet
                stream._fetched = 1
                roles.change(live, alice=role(subscribe="price < 10", is_durable=True))
                await writer.publish_many({"price": each} for each in (600, 2))
                while (found := await anext(stream)).attributes["price"] == 500:
                    pass  # that read was answered before the role was changed
                assert found.attributes == {"price": 2}

    with_roles(work, roles, tmp_path)


def test_who_may_not_subscribe_any_more_reads_nothing(tmp_path: Path):
    roles = Roles(alice=READER, all=ALL)

    async def work(live: Brokers) -> None:
        async with as_user(live[A], "all") as writer, as_user(live[B], "alice") as alice:
            await opened(alice, "risk")
            await writer.publish({"price": 1})
            await roles.changed(live, alice=role(is_durable=True))
            with pytest.raises(NotPermitted, match="may not subscribe"):
                await alice.read("risk", 0)
            with pytest.raises(NotPermitted, match="may not subscribe"):
                await alice.open_durable("risk")
            await alice.drop_durable("risk")

    with_roles(work, roles, tmp_path)


def test_a_read_that_waits_is_not_answered_when_the_role_is_gone(tmp_path: Path):
    roles = Roles(alice=READER, all=ALL)

    async def work(live: Brokers) -> None:
        async with as_user(live[A], "all") as writer, as_user(live[B], "alice") as alice:
            await opened(alice, "risk")
            reading = asyncio.create_task(alice.read("risk", 0, wait_s=20))
            assert live[B].desk is not None
            await until(lambda: live[B].desk._reads._waiting)  # type: ignore[union-attr]
            roles.change(live, alice=None)
            await writer.publish({"price": 1})
            with pytest.raises(Exception, match=r"may not be in any more|connection"):
                await reading

    with_roles(work, roles, tmp_path)


def test_it_moves_as_its_owners_and_what_was_asked_for_moves_along(tmp_path: Path):
    roles = Roles(alice=READER, bob=READER, all=ALL)

    async def work(live: Brokers) -> None:
        async with AsyncExitStack() as stack, as_user(live[A], "all") as writer:
            clients, others = [
                {
                    broker.short: await stack.enter_async_context(as_user(each, who))
                    for broker, each in live.items()
                }
                for who in ("alice", "bob")
            ]
            await opened(clients[B.short], "risk")
            await writer.publish_many({"price": each} for each in (1, 500, 5_000, 2))
            with pytest.raises(InvalidSubscription, match="there is no durable subscription"):
                [each async for each in Move(others, "risk", C.short).run()]
            await roles.changed(live, alice=role(subscribe="price < 10", is_durable=True))
            [each async for each in Move(clients, "risk", C.short).run()]
            there = clients[C.short]
            await opened(there, "risk")
            await writer.publish_many({"price": each} for each in (3, 600))
            assert await all_of(there, "risk", 4) == ([1, 2, 3], 1)
            await roles.changed(live, alice=READER)
            await opened(there, "risk")
            await writer.publish({"price": 700})
            found, missing = await all_of(there, "risk", 5)
            assert (found, missing) == ([1, 2, 3, 700], 1)  # 500 was not copied

    with_roles(work, roles, tmp_path, 3)


def test_rows_are_checked_and_forced_when_they_are_staged(tmp_path: Path):
    roles = Roles(alice=role("kind = 'row'", is_durable=True, forced={"tenant": "a"}), all=ALL)

    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice") as alice, as_user(live[B], "all") as reader:
            await opened(reader, "everything", "TRUE")
            with pytest.raises(NotPermitted, match="notification 2 of 2"):
                await alice.stage("q", 0, 0, 0, [{"kind": "row"}, {"kind": "other"}])
            await alice.stage("q", 0, 0, 1, [{"kind": "row", "tenant": "b", "price": 1}])
            await alice.commit_staged("q", 0, [(0, 1, 1)])
            batch = await reader.read("everything", 0, wait_s=10)
            found = [each.attributes for each in batch.notifications]
            assert found == [{"kind": "row", "tenant": "a", "price": 1}]

    with_roles(work, roles, tmp_path)


def test_rows_that_were_staged_under_another_role_are_not_committed_but_can_be_staged_again(
    tmp_path: Path,
):
    roles = Roles(alice=WRITER, all=ALL)

    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice") as alice, as_user(live[B], "all") as reader:
            await opened(reader, "everything", "TRUE")
            await alice.stage("q", 0, 0, 0, [{"kind": "row", "price": 1}])
            await alice.commit_staged("q", 0, [(0, 0, 1)])
            await alice.stage("q", 1, 0, 0, [{"kind": "row", "price": 500}])
            await roles.changed(live, alice=role("kind = 'row' AND price < 10", is_durable=True))
            with pytest.raises(InvalidNotification, match="under another role do not count"):
                await alice.commit_staged("q", 1, [(0, 0, 1)])
            with pytest.raises(NotPermitted):
                await alice.stage("q", 1, 0, 1, [{"kind": "row", "price": 500}])
            await alice.commit_staged("q", 0, [(0, 0, 1)])  # that was done, and is known still
            await alice.stage("q", 1, 0, 2, [{"kind": "row", "price": 5}])
            await alice.commit_staged("q", 1, [(0, 2, 1)])
            assert await all_of(reader, "everything", 2) == ([1, 5], 0)
            staging = live[A].keeping.channels.staging  # type: ignore[union-attr]
            assert not staging._rows

    with_roles(work, roles, tmp_path)


def test_queries_of_one_name_belong_to_those_who_write_them(tmp_path: Path):
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice") as alice, as_user(live[A], "bob") as bob:
            await alice.stage("q", 0, 0, 0, [{"kind": "row", "price": 1}])
            with pytest.raises(InvalidNotification, match="0 of 1 rows"):
                await bob.commit_staged("q", 0, [(0, 0, 1)])
            await bob.drop_staged("q", 0, [(0, 0)])
            await bob.commit_staged("q", 5, [])
            await alice.commit_staged("q", 0, [(0, 0, 1)])

    with_roles(work, Roles(alice=WRITER, bob=WRITER), tmp_path, 1)


def test_a_name_that_is_too_long_with_the_identity_is_refused(tmp_path: Path):
    long = "i" * 120

    async def work(live: Brokers) -> None:
        async with as_user(live[A], long, "app") as client:
            with pytest.raises(InvalidSubscription, match="too long"):
                await opened(client, "n" * 128)
            await opened(client, "n" * 100)
            await tables_hold(live, 1)

    with_roles(work, Roles(**{long: READER}), tmp_path)


def test_what_was_accepted_under_the_old_role_and_waits_for_the_disk_is_not_delivered_under_the_new(
    tmp_path: Path,
):
    roles = Roles(alice=READER, all=ALL)

    async def work(live: Brokers) -> None:
        assert live[A].keeping is not None
        store, tickets = live[A].keeping.store, []
        async with (
            as_user(live[A], "all") as writer,
            as_user(live[A], "alice") as alice,
            alice.subscribe("price > 0", names=["s"]) as stream,
        ):
            goes_on = store._on_synced
            store._on_synced = tickets.append  # the disk takes its time
            under_way = asyncio.create_task(writer.publish({"price": 500}))
            await until(lambda: tickets)
            narrow = role(subscribe="price < 10", is_durable=True)
            await roles.changed(live, alice=narrow)
            session = live[A].clients["alice/app"]
            await until(lambda: session.numbers)
            store._on_synced = goes_on
            goes_on(tickets[-1])
            await under_way
            await writer.publish({"price": 5})
            assert (await anext(stream)).attributes == {"price": 5}

    with_roles(work, roles, tmp_path, 1)
