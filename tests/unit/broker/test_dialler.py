import asyncio
import logging

from octopis.client.address import Address
from octopis.core.routing import Algorithm
from octopis.overlay.deployment import running
from support.live import line, overlay, run_live, until
from support.processes import free_ports

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
                await until(lambda: first[FIRST].links[LAST].is_up and last[LAST].is_ready)
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
