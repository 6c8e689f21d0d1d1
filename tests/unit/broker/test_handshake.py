import asyncio
import logging

from octopis.broker.handshake import Reception, dials
from octopis.client.address import Address
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.wire.greeting import BrokerHello
from octopis.core.wire.link import overlay_digest
from octopis.errors import ConnectionFailed
from octopis.overlay.deployment import running
from support.live import line, overlay, ready, run_live, until
from support.processes import free_ports

SCOT = line(2, 2)
A0, A1, B0, B1 = SCOT.brokers


def test_of_two_neighbours_the_first_in_the_overlay_dials():
    assert dials(SCOT, A0, B0)
    assert not dials(SCOT, B0, A0)
    assert dials(SCOT, A1, B1)


def test_broker_is_refused_for_the_first_reason_that_holds():
    async def work() -> None:
        async with ready(overlay(SCOT)) as live:
            reception = Reception(live[B0])
            digest = overlay_digest(SCOT)

            def reason(**changes: object) -> str:
                fields = {"broker": A0, "to": B0, "overlay": digest, "algorithm": "snr"}
                refusal = reception.refusal(BrokerHello(**fields | changes))
                assert isinstance(refusal, ConnectionFailed)
                return str(refusal)

            assert "belongs to another overlay" in reason(overlay="x", to=A0)
            assert "looks for B(a, 0)" in reason(to=A0, broker=BrokerId("z", 0))
            assert "is no neighbour" in reason(broker=A1)
            assert "routes by bid" in reason(algorithm="bid", broker=B1)
            assert "it is B(b, 0) that dials" in reason(broker=B1)

    run_live(work())


def test_neighbour_whose_link_is_down_is_taken_in():
    async def work() -> None:
        async with ready(overlay(SCOT)) as live:
            link, live[B0].links[A0].connection = live[B0].links[A0].connection, None
            hello = BrokerHello(A0, B0, overlay_digest(SCOT), "snr")
            assert Reception(live[B0]).refusal(hello) is None
            live[B0].links[A0].connection = link

    run_live(work())


def test_strangers_are_counted_only_while_they_are_strangers():
    async def work() -> None:
        async with ready(overlay(SCOT)) as live:
            assert all(not broker._reception.connections for broker in live.values())

    run_live(work())


FIRST, LAST = line(2).brokers


def places(count: int) -> list[Address]:
    return [Address(port=port) for port in free_ports(count)]


def test_neighbour_that_comes_later_is_found_and_the_log_says_once_that_it_was_not_there(caplog):
    async def work() -> None:
        one, other = places(2)
        both = overlay(line(2), addresses={FIRST: one, LAST: other})
        async with running(both, [FIRST]) as first:
            await asyncio.sleep(0.5)  # several tries
            async with running(both, [LAST]) as last:
                await until(lambda: first[FIRST].links[LAST].is_up and last[LAST].ready.is_set())
                assert caplog.text.count("B(b, 0) cannot be reached") == 1

    with caplog.at_level(logging.INFO):
        run_live(work())


def test_refusal_is_in_the_log_and_no_reason_to_give_up(caplog):
    async def work() -> None:
        one, other = places(2)
        addresses = {FIRST: one, LAST: other}
        async with running(overlay(line(2), addresses=addresses), [FIRST]) as first:
            wrong = overlay(line(2), Algorithm.BID, addresses=addresses)
            async with running(wrong, [LAST]):
                await until(lambda: "refuses the link" in caplog.text)
                assert not first[FIRST].links[LAST].is_up
            async with running(overlay(line(2), addresses=addresses), [LAST]):
                await until(lambda: first[FIRST].links[LAST].is_up)

    run_live(work())
    assert "B(a, 0): B(b, 0) refuses the link: B(a, 0) routes by snr, B(b, 0) by bid" in caplog.text


def test_other_broker_at_the_neighbours_address_is_noticed(caplog):
    async def work() -> None:
        three = line(3)
        first, middle, last = three.brokers
        one, other = places(2)
        mistaken = {
            first: one,
            middle: other,
            last: other,
        }  # the last is where the middle should be
        async with running(overlay(three, addresses=mistaken), [first]):
            async with running(overlay(three, addresses=mistaken), [last]):
                await until(lambda: "looks for B(b, 0), but this is B(c, 0)" in caplog.text)

    run_live(work())
