"""The scene through real brokers, each in a process of its own; stopped, it leaves none."""

import asyncio
import logging
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


def test_broker_is_killed_deliveries_go_on_and_it_comes_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    told: list[FaultMoment] = []
    with caplog.at_level(logging.WARNING, "octopis.overlay"):
        outcome = uvloop.run(play_fault(SMALL, tmp_path, told.append))
    assert outcome.faults == {}
    assert outcome.twice == 0
    assert outcome.lost < outcome.per_s / 2, "what was on the wire, and no more"
    assert [each.subscriber.short for each in outcome.behind] == ["a,0"]
    assert outcome.around_fault > 0
    assert outcome.passed_on > 0
    assert 0 < outcome.back_s <= outcome.whole_s
    states = list(dict.fromkeys(each.victim for each in told))
    assert states[:2] == [VictimState.RUNS, VictimState.DEAD]
    assert states[-1] is VictimState.WHOLE
    assert told[-1].known == 2
    assert caplog.messages == [], "a death that was ordered is no news"
    assert not processes_in(tmp_path)


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
