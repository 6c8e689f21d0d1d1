"""The scene, up to its end before its time; the whole of it is played with the whole demo."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
import uvloop

from octopis.demo.fault import play
from octopis.demo.fault.cast import FULL, SMALL, Cast
from octopis.demo.fault.moment import FaultMoment, VictimState
from octopis.demo.fault.play import fault_order, play_fault
from octopis.errors import OperationFailed
from octopis.overlay.settings import parse_overlay
from support.overlay_command import processes_in


def test_each_broker_has_a_process_of_its_own_under_tnr_and_there_is_no_trace(tmp_path: Path):
    order = fault_order(SMALL, tmp_path)
    assert order.processes == len(SMALL.topology.scot.brokers)
    assert order.trace is None
    assert parse_overlay(order.configuration, "it").configuration.routing.algorithm.value == "tnr"


def test_scene_that_is_stopped_while_the_broker_is_dead_leaves_no_process(tmp_path: Path):
    dead = asyncio.Event()

    def see(now: FaultMoment) -> None:
        if now.victim is VictimState.DEAD:
            dead.set()

    async def work() -> None:
        playing = asyncio.create_task(play_fault(SMALL, tmp_path, see))
        await dead.wait()
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    uvloop.run(work())
    assert not processes_in(tmp_path)
    assert not list((tmp_path / "state").glob("*"))


@pytest.mark.parametrize("answer", [{"error": "no answer"}, {"uptime_s": 3_600.0}])
def test_broker_that_does_not_come_back_is_an_error(
    monkeypatch: pytest.MonkeyPatch, cast: Cast, answer: dict[str, Any]
):
    async def ask_all(addresses: dict[str, str]) -> dict[str, dict[str, Any]]:
        assert list(addresses) == ["b,0"]
        return {"b,0": answer}

    monkeypatch.setattr(play, "ask_all", ask_all)
    monkeypatch.setattr(play, "BACK_S", 0.1)
    scene = play._Scene(FULL, cast, {"b,0": "127.0.0.1:1"}, lambda _: None)
    scene._record.killed_ns = time.time_ns()
    with pytest.raises(OperationFailed, match=r"B\(b, 0\) was killed, and not back within 0.1 s"):
        uvloop.run(scene._whole_again())
