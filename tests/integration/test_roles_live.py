"""What a client may do whose identity is known: at brokers without a disk."""

import asyncio

import pytest
from msgspec.msgpack import encode

from octopis.core.routing import Algorithm
from octopis.core.wire.client import (
    SubscribeRequest,
    decode_to_client,
    encode_publish,
    encode_request,
)
from octopis.core.wire.greeting import ClientHello, Welcome, decode_answer, encode_hello
from octopis.errors import (
    ConnectionFailed,
    InvalidNotification,
    InvalidSubscription,
    NotPermitted,
)
from support.live import (
    Brokers,
    client_of,
    line,
    overlay,
    raw_peer,
    ready,
    run_live,
    tables_hold,
    until,
)
from support.roles import ALL, Roles, as_user, by_name, role

A, B, C = line(3).brokers
KNOWN = "known"


def with_roles(work, roles: Roles, regions: int = 1, algorithm: Algorithm = Algorithm.TNR) -> None:
    """Run work(brokers) with clients that are who their names say."""

    async def whole() -> None:
        with by_name(roles):
            async with ready(overlay(line(regions), algorithm)) as live:
                await work(live)

    run_live(whole())


async def prices(stream, count: int) -> list[object]:
    async with asyncio.timeout(10):
        return [(await anext(stream)).attributes.get("price") for _ in range(count)]


# What is published


def test_what_a_role_does_not_match_is_refused_whole_with_its_number_and_the_filter():
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice") as alice, as_user(live[A], "all") as reader:
            async with reader.subscribe("TRUE") as stream:
                batch = [{"topic": "orders", "price": n} for n in range(3)]
                with pytest.raises(NotPermitted) as refused:
                    await alice.publish_many([*batch, {"topic": "admin"}])
                assert "notification 4 of 4" in str(refused.value)
                assert "topic = 'orders'" in str(refused.value)
                with pytest.raises(NotPermitted):
                    await alice.publish({"price": 1})  # UNKNOWN is no
                with pytest.raises(NotPermitted):
                    await alice.publish({"topic": 5})
                await alice.publish({"topic": "orders", "price": 9})
                assert await prices(stream, 1) == [9]
            assert live[A].refusals == 3

    with_roles(work, Roles(alice=role("topic = 'orders'"), all=ALL))


@pytest.mark.parametrize("length", [0, 4_000])
def test_single_publications_are_refused_one_by_one_though_they_share_requests(length: int):
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice") as alice, as_user(live[A], "all") as reader:
            async with reader.subscribe("TRUE") as stream:
                bad = {0, 13, 14, 39}
                body = bytes(length)  # with one, there are several requests
                topics = ["admin" if n in bad else "orders" for n in range(40)]
                found = await asyncio.gather(
                    *(
                        alice.publish({"topic": each, "price": n}, body)
                        for n, each in enumerate(topics)
                    ),
                    return_exceptions=True,
                )
                refused = {n: each for n, each in enumerate(found) if each is not None}
                assert refused.keys() == bad
                assert all("notification 1 of 1 is not" in str(each) for each in refused.values())
                expected = [n for n in range(40) if n not in bad]
                come = await prices(stream, 36)
                assert sorted(come) == expected  # what was on its way is ahead of what was tried
                assert length or come == expected
            assert live[A].refusals < 40

    with_roles(work, Roles(alice=role("topic = 'orders'"), all=ALL))


def test_an_attribute_that_stands_twice_is_refused_as_readers_may_take_either():
    async def work(live: Brokers) -> None:
        async with raw_peer(live[A]) as alice:
            await alice.send(encode_hello(ClientHello("alice/app", window=9)))
            await alice.next_frames()
            topics = [encode("topic") + encode(each) for each in ("admin", "orders")]
            rest = b"".join(map(encode, (b"", "alice/app", 1, 1)))
            await alice.send(encode_publish(1, [b"\x95\x82" + b"".join(topics) + rest]))
            (answer,) = decode_to_client((await alice.next_frames())[0])  # type: ignore[misc]
            assert "notification 1 has an attribute twice" in answer.refusal.message
            assert live[A].intake.published == 0

    with_roles(work, Roles(alice=role("topic = 'orders'")))


def test_who_may_not_publish_is_told_so():
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "mute") as mute:
            with pytest.raises(NotPermitted, match="may not publish anything"):
                await mute.publish({"x": 1})

    with_roles(work, Roles(mute=role(subscribe="TRUE")))


def test_forced_attributes_are_written_by_the_broker_whatever_the_client_says():
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice") as alice, as_user(live[A], "all") as reader:
            async with reader.subscribe("tenant = 'a' AND level = 3") as stream:
                await alice.publish({"tenant": "b", "level": True, "price": 1}, b"body")
                await alice.publish({"price": 2})
                first, second = await anext(stream), await anext(stream)
            assert first.attributes == {"tenant": "a", "level": 3, "price": 1}
            assert type(first.attributes["level"]) is int
            assert (first.payload, first.publisher) == (b"body", "alice/app")
            assert second.attributes == {"price": 2, "tenant": "a", "level": 3}

    forced = role("tenant = 'a'", forced={"tenant": "a", "level": 3})
    with_roles(work, Roles(alice=forced, all=ALL))


def test_a_notification_that_gets_too_many_attributes_is_refused():
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice") as alice:
            with pytest.raises(InvalidNotification, match="65 attributes"):
                await alice.publish({f"n{n}": n for n in range(64)})

    with_roles(work, Roles(alice=role("TRUE", forced={"tenant": "a"})))


# What is subscribed


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_a_subscription_gets_what_is_asked_for_and_allowed(algorithm: Algorithm):
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "all") as writer, as_user(live[C], "alice") as alice:
            async with alice.subscribe("NOT (price = 3)") as stream:
                await tables_hold(live, 1)
                await writer.publish_many([{"price": 2_000}, {"price": 3}, {"note": "x"}])
                await writer.publish_many([{"price": "12"}, {"price": 5}])
                assert await prices(stream, 1) == [5]

    with_roles(work, Roles(alice=role(subscribe="price < 1000"), all=ALL), 3, algorithm)


def test_who_may_not_subscribe_is_told_so_and_the_client_goes_on():
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "mute") as mute:
            with pytest.raises(NotPermitted, match="may not subscribe"):
                async with mute.subscribe("TRUE"):
                    pass
            await mute.publish({"x": 1})

    with_roles(work, Roles(mute=role("TRUE")))


# Names


def test_identities_have_their_own_names_and_cannot_meet_those_of_others():
    async def work(live: Brokers) -> None:
        async with (
            as_user(live[A], "alice") as alice,
            as_user(live[A], "bob") as bob,
            as_user(live[B], "bob", secret=KNOWN) as elsewhere,
            alice.subscribe("x = 1", names=["s"]) as hers,
            bob.subscribe("x = 2", names=["s"]) as his,
            elsewhere.subscribe("x = 3", names=["s2"]),
        ):
            await tables_hold(live, 3)
            await bob.publish_many([{"x": 1}, {"x": 2}])
            assert (await anext(hers)).attributes == {"x": 1}
            assert (await anext(his)).attributes == {"x": 2}
            assert sorted(live[A].clients) == ["alice/app", "bob/app"]

    with_roles(work, Roles(alice=ALL, bob=ALL), 2)


def test_a_large_epoch_of_somebody_else_moves_and_locks_nothing():
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice") as alice, alice.subscribe("x = 1", names=["s"]) as s:
            async with raw_peer(live[B]) as mallory:
                await mallory.send(encode_hello(ClientHello("mallory/app", window=9)))
                await mallory.next_frames()
                for name in ("s", "alice/s", "../alice/s"):
                    ask = SubscribeRequest(1, 1, name, "x = 1", "sql", 900_000)
                    await mallory.send(encode_request(ask))
                await tables_hold(live, 4)
                await alice.publish({"x": 1})
                assert (await anext(s)).attributes == {"x": 1}

    with_roles(work, Roles(alice=ALL, mallory=ALL), 2)


def test_names_of_identities_with_odd_characters_do_not_run_into_those_of_others():
    async def work(live: Brokers) -> None:
        async with (
            as_user(live[A], "all") as writer,
            as_user(live[A], "durable:x#1") as odd,
            odd.subscribe("x = 1") as stream,
        ):
            (known,) = [each.subscription.id for each in live[A].core.table]
            assert known.startswith("durable%3Ax%231/")
            await writer.publish({"x": 1})
            assert (await anext(stream)).attributes == {"x": 1}

    with_roles(work, Roles(**{"durable:x#1": ALL, "all": ALL}))


def test_a_name_that_is_too_long_with_the_identity_is_refused_clearly():
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice") as alice:
            with pytest.raises(InvalidSubscription, match=r"too long.*at most 236 characters"):
                async with alice.subscribe("x = 1", names=["n" * 250]):
                    pass

    with_roles(work, Roles(alice=ALL))


def test_refusals_name_things_as_the_client_knows_them():
    async def work(live: Brokers) -> None:
        async with (
            as_user(live[A], "alice") as alice,
            as_user(live[A], "alice", "other") as other,
            alice.subscribe("x = 1", names=["s"]),
        ):
            with pytest.raises(InvalidSubscription) as refused:
                async with other.subscribe("x = 2", names=["s"]):
                    pass
            assert "the subscription 's' asks for something else" in str(refused.value)
            assert "alice/" not in str(refused.value)

    with_roles(work, Roles(alice=ALL))


def test_a_session_is_not_gone_on_with_by_another_identity_with_its_token_and_secret():
    async def work(live: Brokers) -> None:
        async with raw_peer(live[A]) as first:
            hello = ClientHello("alice/app", window=9, secret=KNOWN)
            await first.send(encode_hello(hello))
            welcome = decode_answer((await first.next_frames())[0])
            assert isinstance(welcome, Welcome)
            kept = live[A].clients["alice/app"]
            async with raw_peer(live[A]) as second:
                stolen = ClientHello("bob/app", 9, secret=KNOWN, session=welcome.session)
                await second.send(encode_hello(stolen))
                answer = decode_answer((await second.next_frames())[0])
                assert isinstance(answer, Welcome)
                assert not answer.resumed
                assert live[A].clients["alice/app"] is kept
                assert not kept.connection.is_closing
                assert not kept.may_resume(hello, live[A].clients["bob/app"].identity)

    with_roles(work, Roles(alice=ALL, bob=ALL))


# Status


def test_only_who_may_sees_the_status_and_an_observer_is_refused_at_once():
    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice") as alice, as_user(live[A], "boss") as boss:
            assert (await boss.status())["broker"] == "a,0"
            with pytest.raises(NotPermitted, match="status = true"):
                await alice.status()
            await alice.publish({"x": 1})
        with pytest.raises(ConnectionFailed, match="status = true"):
            async with as_user(live[A], "alice", observer=True):
                pass
        async with as_user(live[A], "boss", observer=True) as observer:
            assert (await observer.status())["broker"] == "a,0"

    with_roles(work, Roles(alice=role("TRUE", "TRUE", is_durable=True), boss=ALL))


# Roles that change


def test_a_changed_role_ends_the_session_and_the_client_goes_on_under_the_new_one():
    roles = Roles(alice=role(subscribe="price < 1000"), all=ALL)

    async def work(live: Brokers) -> None:
        async with (
            as_user(live[A], "all") as writer,
            as_user(live[B], "alice") as alice,
            alice.subscribe("price > 0") as stream,
        ):
            await tables_hold(live, 1)
            await writer.publish_many([{"price": 500}, {"price": 5}])
            assert await prices(stream, 2) == [500, 5]
            (before,) = [each.subscription.id for each in live[A].core.table]
            assert roles.change(live, alice=role(subscribe="price < 10")) == 1
            assert "alice/app" not in live[B].clients

            def is_made_anew() -> bool:
                known = [each.subscription for each in live[A].core.table]
                return [str(each.filter) for each in known] == ["price > 0 AND price < 10"] and (
                    known[0].id != before
                )

            await until(is_made_anew)
            await writer.publish_many([{"price": 500}, {"price": 6}])
            assert await prices(stream, 1) == [6]
            assert roles.change(live) == 0

    with_roles(work, roles, 2)


def test_who_is_gone_does_not_stay_and_what_was_queued_is_not_delivered():
    roles = Roles(alice=ALL, all=ALL)

    async def work(live: Brokers) -> None:
        async with raw_peer(live[A]) as alice, as_user(live[A], "all") as writer:
            await alice.send(encode_hello(ClientHello("alice/app", window=1)))
            await alice.next_frames()
            await alice.send(encode_request(SubscribeRequest(1, 1, "s", "x > 0", "sql", 0)))
            await tables_hold(live, 1)
            await writer.publish_many([{"x": n} for n in range(1, 50)])
            session = live[A].clients["alice/app"]
            assert len(session.queue) == 48
            assert roles.change(live, alice=None) == 1
            assert len(session.queue) == 0
            text = b"".join(bytes(frame.body) for frame in await alice.frames())
            assert b"'alice' may not be in any more" in text
            assert "alice/app" not in live[A].clients
            await tables_hold(live, 0)

    with_roles(work, roles)


def test_a_session_whose_client_is_away_ends_too_and_cannot_be_gone_on_with():
    roles = Roles(alice=ALL, all=ALL)

    async def work(live: Brokers) -> None:
        async with raw_peer(live[A]) as alice:
            await alice.send(encode_hello(ClientHello("alice/app", window=9, secret=KNOWN)))
            welcome = decode_answer((await alice.next_frames())[0])
            assert isinstance(welcome, Welcome)
        await until(lambda: live[A].clients["alice/app"].is_kept)
        roles.change(live, alice=role("TRUE", "x = 1"))
        assert not live[A].clients
        async with raw_peer(live[A]) as alice:
            again = ClientHello("alice/app", window=9, secret=KNOWN, session=welcome.session)
            await alice.send(encode_hello(again))
            answer = decode_answer((await alice.next_frames())[0])
            assert isinstance(answer, Welcome)
            assert not answer.resumed

    with_roles(work, roles)


def test_another_type_of_a_forced_value_is_another_role():
    roles = Roles(alice=role("TRUE", forced={"level": 1}))

    async def work(live: Brokers) -> None:
        async with as_user(live[A], "alice"):
            assert roles.change(live, alice=role("TRUE", forced={"level": 1})) == 0
            assert roles.change(live, alice=role("TRUE", forced={"level": True})) == 1

    with_roles(work, roles)


def test_without_identities_everything_is_as_ever():
    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            async with (
                client_of(live[A], client_id="me") as client,
                client.subscribe("x = 1", names=["s"]) as stream,
            ):
                assert list(live[A].clients) == ["me"]
                assert [each.subscription.id for each in live[A].core.table] == ["s"]
                assert live[A].roles_changed(lambda _: None) == 0
                await client.publish({"x": 1})
                assert (await anext(stream)).attributes == {"x": 1}
                assert (await client.status())["clients"]["me"]["connected"]

    run_live(work())
