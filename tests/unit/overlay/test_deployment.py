import asyncio
import signal
import subprocess
import sys

import pytest

from octopis.client.address import Address
from octopis.core.topology import from_catalogue
from octopis.errors import OperationFailed
from octopis.overlay.deployment import running
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
