import asyncio
import signal
import socket
import subprocess
import sys

import pytest

from octopis.client.address import Address
from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.overlay.deployment import address_of, open_listeners, planned, running
from support.live import line, overlay, ready, run_live
from support.processes import free_ports


def test_all_brokers_of_an_overlay_run_in_one_process():
    async def work() -> None:
        async with ready(overlay(from_catalogue("figure-7").scot)) as live:
            assert len(live) == 9
            assert len({broker.address for broker in live.values()}) == 9
            assert all(link.is_up for broker in live.values() for link in broker.links.values())

    run_live(work())


def test_brokers_on_two_event_loops_or_machines_find_each_other():
    async def work() -> None:
        scot = line(2)
        first, last = scot.brokers
        places = [Address(port=port) for port in free_ports(2)]
        both = overlay(scot, addresses=dict(zip(scot.brokers, places, strict=True)))
        async with running(both, [last]) as one:
            await asyncio.sleep(0.1)
            assert not one[last].ready.is_set()  # it waits for its neighbour
            async with running(both, [first]) as other:
                await one[last].ready.wait()
                await other[first].ready.wait()

    run_live(work())


def test_failure_to_start_stops_those_that_have_started():
    async def work() -> None:
        scot = line(2)
        first, last = scot.brokers
        (port,) = free_ports(1)
        same = {first: Address(port=port), last: Address(port=port)}
        with pytest.raises(OperationFailed, match=r"B\(b, 0\) cannot listen"):
            async with running(overlay(scot, addresses=same)):
                pass
        async with ready(overlay(line(1), addresses={first: Address(port=port)})):
            pass  # the first's port is free again

    run_live(work())


PROGRAM = """
from octopis.broker.settings import OverlayConfiguration
from octopis.overlay.deployment import run
from octopis.core.topology import from_catalogue
run(OverlayConfiguration(scot=from_catalogue("figure-7").scot),
    on_ready=lambda addresses: print(len(addresses), flush=True))
print("stopped")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_a_process_in_order(number: signal.Signals):
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "9\n"
        process.send_signal(number)
        printed, errors = process.communicate(timeout=20)
    assert (process.returncode, printed, errors) == (0, "stopped\n", "")


A, B, C = line(3).brokers


def test_ports_follow_each_other_from_7400():
    assert planned(overlay(line(3)), None) == {
        A: Address(port=7400),
        B: Address(port=7401),
        C: Address(port=7402),
    }


def test_configured_ports_are_kept_and_not_given_twice():
    placed = overlay(line(3), addresses={B: Address(port=7400)})
    assert [each.port for each in planned(placed, None).values()] == [7401, 7400, 7402]


def test_first_port_overrides_the_configured_ones():
    placed = overlay(line(3), addresses={B: Address(port=7400)})
    assert [each.port for each in planned(placed, 8000).values()] == [8000, 8001, 8002]
    assert [each.port for each in planned(placed, 0).values()] == [0, 0, 0]


def test_too_few_ports_are_an_error():
    with pytest.raises(InvalidConfiguration, match="not enough ports from 65534 on"):
        planned(overlay(line(3)), 65_534)


def test_brokers_listen_at_known_places_before_anything_runs():
    listeners = open_listeners(planned(overlay(line(3)), 0))
    try:
        assert len({address_of(listener).port for listener in listeners.values()}) == 3
        for listener in listeners.values():
            socket.create_connection(address_of(listener)).close()
    finally:
        for listener in listeners.values():
            listener.close()


def test_port_that_is_taken_leaves_no_socket_open():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = Address(port=taken.getsockname()[1])
        free = open_listeners({A: Address()})[A]
        first = address_of(free)
        free.close()
        with pytest.raises(OperationFailed, match=r"B\(b, 0\) cannot listen.*nothing was started"):
            open_listeners({A: first, B: place})
        open_listeners({A: first})[A].close()
