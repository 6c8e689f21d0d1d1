"""What a client or a false neighbour can do to an overlay, and what others notice of it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from octopis.broker.handshake import level_of
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.delivery.posts import Open
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import (
    Flooded,
    HeardVersions,
    HostChange,
    HostTable,
    Message,
    NotificationMessage,
    Subscribe,
    Subscription,
)
from octopis.core.routing.options import Algorithm
from octopis.core.wire.control import Notice, Refusal
from octopis.core.wire.frames import FrameKind, encode
from octopis.core.wire.greeting import BrokerHello, encode_hello, encode_refusal
from octopis.core.wire.link import encode_message, frames_of, overlay_digest
from octopis.core.wire.posts import encode_posts
from octopis.core.wire.published import Published, decode_published, encode_published
from octopis.core.wire.targeted import encode_numbered, encode_targeted
from octopis.errors import InvalidSubscription, OperationFailed
from support.live import (
    LIMITS,
    PLAIN,
    Brokers,
    RawPeer,
    client_of,
    line,
    overlay,
    quiet,
    raw_peer,
    ready,
    run_live,
    tables_hold,
    until,
)

A, B = line(2).brokers
MINE = "subscriptions/mine"


# Whose subscription it is


def test_nobody_takes_a_subscription_whose_id_he_has_guessed():
    async def work() -> None:
        async with (
            ready(overlay(line(2))) as live,
            client_of(live[A]) as victim,
            client_of(live[B]) as thief,
            victim.subscribe("x > 0", names=[MINE]) as notifications,
        ):
            await tables_hold(live, 1)
            for stolen in ("x > 0", "x > 1"):
                with pytest.raises(InvalidSubscription, match="is another's"):
                    await thief.subscribe(stolen, names=[MINE]).open()
            await thief.publish({"x": 1})
            assert (await anext(notifications)).attributes == {"x": 1}

    run_live(work())


def test_client_with_its_secret_takes_its_subscription_over_from_a_dead_host():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            own = {"client_id": "me", "secret": "a" * 32}
            first = client_of(live[A], **own, reconnect_s=0.1)
            await first.open()
            await first.subscribe("x > 0", names=[MINE]).open()
            await tables_hold(live, 1)
            for task in live[A]._tasks:
                task.cancel()  # the host is gone, and nobody has ended its subscriptions
            live[A].links[B].connection.abort("killed by the test")
            async with (
                client_of(live[B], **own) as again,
                again.subscribe("x > 0", names=[MINE]) as notifications,
            ):
                assert [entry.host for entry in live[B].core.table] == [B]
                await again.publish({"x": 1})
                assert (await anext(notifications)).attributes == {"x": 1}
            await first.close()

    run_live(work())


def test_who_loses_a_subscription_is_told():
    async def work() -> None:
        own = {"client_id": "me", "secret": "b" * 32}
        async with (
            ready(overlay(line(2))) as live,
            client_of(live[A], **own) as first,
            client_of(live[B], **own) as second,
        ):
            old = await first.subscribe("x > 0", names=[MINE]).__aenter__()
            await tables_hold(live, 1)
            async with second.subscribe("x > 0", names=[MINE]):
                with pytest.raises(InvalidSubscription, match="has moved on to another broker"):
                    await asyncio.wait_for(anext(old), 5)

    run_live(work())


def test_no_number_locks_an_id_for_ever():
    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            core = live[A].core
            with pytest.raises(InvalidSubscription, match="cannot follow the move -1"):
                core.client_subscribes("c", MINE, parse_filter("x > 0"), 2**63 - 1)
            assert core.client_subscribes("c", MINE, parse_filter("x > 0"), 7)

    run_live(work())


# Links


@asynccontextmanager
async def false_neighbour(live: Brokers, algorithm: Algorithm) -> AsyncIterator[RawPeer]:
    """Stand at the second broker in the place of the first, which is gone."""
    first, last = live[A], live[B]
    for task in first._tasks:
        task.cancel()
    first.links[B].connection.abort("killed by the test")
    await until(lambda: not last.links[A].is_up)
    async with raw_peer(last) as peer:
        digest = overlay_digest(last.overlay.scot)
        level = level_of(last.overlay)
        await peer.send(encode_hello(BrokerHello(A, B, digest, algorithm.value, level)))
        await peer.next_frames()
        yield peer


def asked(host: BrokerId, cbv_s: int) -> Subscribe:
    subscription = Subscription("s", parse_filter("x > 0"))
    return Subscribe(subscription, ClusterBitVector(cbv_s), host)


NOWHERE = BrokerId("z", 9)
(ONE,) = decode_published(b"\x91" + encode_published({"x": 1}, b"", "me", 1, 1))
IMPOSSIBLE: dict[str, tuple[Algorithm, Message]] = {
    "a host that is not there": (Algorithm.SNR, asked(NOWHERE, 1)),
    "another cluster": (Algorithm.SNR, asked(A, 2)),
    "all clusters": (Algorithm.SNR, asked(A, 2**70 - 1)),
    "what only this side can know": (Algorithm.SNR, asked(B, 1)),
    "a flood of nobody": (Algorithm.BID, Flooded(NOWHERE, 1, 1, None, "x")),
    "a change of nobody": (Algorithm.TNR, HostChange(NOWHERE, 1, 0, 1, (), ("x",))),
    "a change of another algorithm": (Algorithm.SNR, HostChange(A, 1, 0, 1, (), ("x",))),
    "a change for nobody": (Algorithm.TNR, HostChange(A, 1, 0, 1, (), ("x",), 4)),
    "clusters that are not there": (Algorithm.TNR, HostChange(A, 1, 0, 1, (), ("x",), 2, 4)),
    "a change of nothing": (Algorithm.TNR, HostChange(A, 1, 0, 1)),
    "a change backwards": (Algorithm.TNR, HostChange(A, 1, 2, 1, (), ("x",))),
    "the last of all generations": (Algorithm.TNR, HostTable(A, 2**62, 1, ())),
    "to have heard of them": (Algorithm.TNR, HeardVersions({B: (2**62, 1)})),
    "a notification without targets": (Algorithm.TNR, NotificationMessage(ONE)),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_neighbour_that_says_what_cannot_be_is_cut_off(what: str, caplog):
    algorithm, message = IMPOSSIBLE[what]

    async def work() -> None:
        async with ready(overlay(line(2), algorithm)) as live:
            async with false_neighbour(live, algorithm) as peer:
                await peer.send(b"".join(frames_of([encode_message(message)])))
                frames = await peer.frames()
                assert frames[-1].kind == FrameKind.GOODBYE
            await quiet(live)
            assert not list(live[B].core.table)

    run_live(work())
    lines = [each for each in caplog.text.splitlines() if "closing the connection" in each]
    assert len(lines) == 1


@pytest.mark.parametrize("delivery", [PLAIN, DeliveryOptions()])
def test_content_that_cannot_be_read_is_dropped_and_who_passed_it_on_is_not_cut_off(
    delivery: DeliveryOptions, caplog
):
    """Brokers on the way do not read it: somebody may have posed as a neighbour before them."""

    async def work() -> None:
        async with (
            ready(overlay(line(2), Algorithm.TNR, delivery=delivery)) as live,
            client_of(live[B]) as reader,
            reader.subscribe("x >= 0") as notifications,
        ):
            await tables_hold(live, 1)
            connection = live[A].links[B].connection
            bad = Published({}, encoded=encode(("no map", b"", "me", 1, 1)))
            if delivery is PLAIN:
                sent = [NotificationMessage(each, targets=2) for each in (bad, ONE, bad)]
                items = [encode_targeted(each) for each in sent]
            else:
                life = live[B].posting.channels.receiver._life
                connection.write(encode_posts([Open(1, 0, life, 7, 0)]))
                sent = [
                    NotificationMessage(each, targets=2, origin=7, number=number, distances=(1,))
                    for number, each in enumerate((bad, ONE, bad), start=1)
                ]
                items = [encode_numbered(each) for each in sent]
            connection.write(b"".join(frames_of(items)))
            assert (await anext(notifications)).attributes == {"x": 1}
            if delivery is not PLAIN:  # what cannot be read is not asked for again and again
                assert live[B].posting.channels.receiver._streams[7].last == 3
            assert live[B].links[A].is_up
            assert live[B].links[A].reconnects == 0
            assert live[B].status()["links"]["a,0"]["unreadable"] == 2

    run_live(work())
    assert "cannot be read: dropped, 2 so far" in caplog.text


def test_forged_notice_does_not_stop_publishers_for_longer_than_its_broker_needs_to_answer():
    async def work() -> None:
        three = line(3)
        first, middle, last = three.brokers
        async with ready(overlay(three)) as live:
            forged = Notice(last, "forged", 2**62, holds=True)
            live[middle].backpressure.heard(first, forged)
            await until(lambda: not live[middle].backpressure.brokers, 1.0)
            # And its own words count again.
            live[last].backpressure.output_changed("a queue", True)
            await until(lambda: live[first].backpressure.brokers == [last])

    run_live(work())


def test_neighbour_that_dials_anew_replaces_a_connection_that_is_half_dead():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            link = live[B].links[A]
            half_dead = live[A].links[B].connection
            half_dead._transport.pause_reading()  # no end of file comes over a pulled cable
            half_dead.write = lambda _: None
            async with raw_peer(live[B]) as peer:
                digest = overlay_digest(line(2))
                begun = time.monotonic()
                await peer.send(encode_hello(BrokerHello(A, B, digest, "snr")))
                assert (await peer.next_frames())[0].kind == FrameKind.HELLO
                assert time.monotonic() - begun < LIMITS.silence_s
                assert link.reconnects == 1

    run_live(work())


def test_hello_of_a_handshake_that_was_given_up_brings_no_link_up(caplog):
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            for task in live[A]._tasks:
                task.cancel()
            live[A].links[B].connection.abort("killed by the test")
            await until(lambda: not live[B].links[A].is_up)
            async with raw_peer(live[B]) as peer:
                hello = encode_hello(BrokerHello(A, B, overlay_digest(line(2)), "snr"))
                late = Refusal.of(OperationFailed("there was no hello within 5 s"))
                await peer.send(hello + encode_refusal(late))
                assert await peer.frames() == []
            assert live[B].links[A].reconnects == 0

    run_live(work())
    assert "does not belong on a link" not in caplog.text


# What is not sent


def test_publisher_is_told_what_could_not_be_sent():
    async def work() -> None:
        async with (
            ready(overlay(line(2), limits=replace(LIMITS, redial_s_max=30.0))) as live,
            client_of(live[B], reconnect_s=0) as reader,
            client_of(live[A]) as publisher,
            reader.subscribe("x > 0"),
        ):
            await tables_hold(live, 1)
            await publisher.publish({"x": 1})
            assert publisher.unsent == 0
            for task in live[A]._tasks:
                task.cancel()
            live[A].links[B].connection.abort("cut by the test")
            await until(lambda: not live[A].links[B].is_up)
            await publisher.publish_many([{"x": 1}, {"x": 2}, {"y": 1}])
            assert publisher.unsent == 2
            assert (await publisher.status())["counters"]["lost_on_down_links"] == 2

    run_live(work())


def test_broker_that_has_not_heard_of_a_neighbour_says_so(caplog):
    async def work() -> None:
        async with ready(overlay(line(2), limits=replace(LIMITS, sync_s=0.1))) as live:
            live[A].core._subscriptions.unheard.add(B)
            async with client_of(live[A]) as publisher:
                await publisher.publish({"x": 1})
                assert (await publisher.status())["unheard"] == ["b,0"]

    run_live(work())
    assert "has not heard of 1 neighbours" in caplog.text
