import asyncio
import os
import resource
import signal
import time
from pathlib import Path

import pytest

from octopis.client.client import connect
from octopis.core.model import BrokerId
from octopis.core.topology import from_catalogue
from octopis.errors import OperationFailed
from octopis.overlay.registry import OverlayState, overlays
from octopis.overlay.status import ask_all
from octopis.overlay.supervisor import Supervisor, check_descriptors, cores, share_brokers
from support.live import line, run_live
from support.supervised import small_order


def test_overlay_runs_until_it_is_told_to_stop_and_leaves_no_state(tmp_path: Path):
    async def work() -> None:
        supervisor = Supervisor(small_order(tmp_path))
        ready: asyncio.Future[OverlayState] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(supervisor.run(ready.set_result))
        state = await ready
        assert [len(share) for share in state.processes] == [2, 2]
        assert overlays(tmp_path) == ([state], [])
        assert all(status["ready"] for status in (await ask_all(state.addresses)).values())
        async with connect(state.url) as client:
            await client.publish({"x": 1})
        supervisor.stop()
        await running
        assert supervisor.undrained == 0
        assert overlays(tmp_path) == ([], [])

    run_live(work())


def test_process_that_ends_while_a_trace_is_written_is_a_failure_with_its_log(tmp_path: Path):
    async def work() -> None:
        supervisor = Supervisor(small_order(tmp_path, trace=str(tmp_path / "trace")))

        def ready(_: OverlayState) -> None:
            supervisor.kill(BrokerId("b", 0))

        with pytest.raises(OperationFailed, match=r"process 1 with the brokers .* by signal 9"):
            await supervisor.run(ready)
        assert [len(each) for each in overlays(tmp_path)] == [0, 1]

    run_live(work())


def test_stop_while_a_process_is_dead_is_orderly_and_does_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("octopis.overlay.deaths._FIRST_S", 60.0)
    patient = small_order(tmp_path).configuration.replace("drain_s = 2.0", "drain_s = 60.0")

    async def work() -> None:
        supervisor = Supervisor(small_order(tmp_path, configuration=patient))
        ready: asyncio.Future[OverlayState] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(supervisor.run(ready.set_result))
        await ready
        dead = next(each for each in supervisor._children if BrokerId("b", 0) in each.brokers)
        supervisor.kill(BrokerId("b", 0))
        assert await dead.ended() == -signal.SIGKILL
        await asyncio.sleep(0.1)  # the pipe to it breaks, too
        begin = time.monotonic()
        supervisor.stop()
        await running
        assert time.monotonic() - begin < 20, "to drain would take 60 s"
        assert overlays(tmp_path) == ([], [])

    run_live(work())


def test_messages_that_could_not_be_drained_are_counted(tmp_path: Path):
    slow = small_order(tmp_path).configuration.replace("drain_s = 2.0", "drain_s = 0.2")
    shape = '[[links.shape]]\nsource = "a,0"\ntarget = "b,0"\nbandwidth_bytes_per_s = 20\n'

    async def work() -> None:
        supervisor = Supervisor(small_order(tmp_path, configuration=slow + shape))
        ready: asyncio.Future[OverlayState] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(supervisor.run(ready.set_result))
        state = await ready
        reader = connect(f"octopis://{state.addresses['b,0']}", reconnect_s=0)
        async with connect(state.url) as writer, reader, reader.subscribe("x >= 0"):
            while (await writer.status())["subscriptions"] != 1:
                await asyncio.sleep(0.01)
            await writer.publish_many({"x": number} for number in range(50))
            supervisor.stop()
            await running
        assert supervisor.undrained > 0

    run_live(work())


@pytest.mark.parametrize("name", ["figure-3", "paper"])
@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_every_broker_is_in_one_process_and_processes_are_alike(name: str, processes: int):
    scot = from_catalogue(name).scot
    shares = share_brokers(scot, processes)
    assert sorted(broker for share in shares for broker in share) == sorted(scot.brokers)
    assert len(shares) == processes
    sizes = [len(share) for share in shares]
    assert max(sizes) == -(-len(scot.brokers) // processes)


def test_neighbours_are_apart_where_that_can_be():
    first, second = share_brokers(line(10), 2)
    assert [broker.region for broker in first] == list("acegi")
    assert [broker.region for broker in second] == list("bdfhj")


def test_there_are_never_more_processes_than_brokers():
    assert [len(share) for share in share_brokers(line(2), 8)] == [1, 1]


def test_only_cores_that_this_process_may_use_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    assert cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert cores() == 4


@pytest.mark.parametrize(("hard", "is_enough"), [(52, False), (58, True), (-1, True)])
def test_too_few_open_files_are_found_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard: int, is_enough: bool
):
    scot = line(2, 2)
    raised = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (40, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    if is_enough:
        check_descriptors(scot, share_brokers(scot, 2), tables=0)
        assert raised == [(54, hard)]
        return
    with pytest.raises(OperationFailed, match="needs 54 open files, but may have 52 at most"):
        run_live(refused(tmp_path))
    assert list(tmp_path.iterdir()) == []


async def refused(folder: Path) -> None:
    await Supervisor(small_order(folder)).run(lambda _: None)
