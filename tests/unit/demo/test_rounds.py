import asyncio
import os
from pathlib import Path

import pytest
import uvloop

from octopis.core.routing import Algorithm
from octopis.demo.rounds import (
    Round,
    overlay_document,
    overlay_order,
    overlay_up,
    play_round,
    read_links,
)
from octopis.demo.watching import OverlayMoment
from octopis.demo.workload import SlowedLink
from octopis.errors import OperationFailed
from octopis.overlay.settings import parse_overlay
from octopis.overlay.status import ask_all
from octopis.overlay.supervisor import Supervisor
from octopis.scenario.folder import Scenario
from support.overlay_command import SMALL, processes_in


def test_round_is_played_through_real_brokers(tmp_path: Path, scenario: Scenario, link: SlowedLink):
    told: list[OverlayMoment] = []
    found = uvloop.run(play_round(scenario, link, Algorithm.DNR, tmp_path, told.append))
    assert told == found.snapshots
    assert len(told) > 5
    assert found.played.notifications == scenario.notification_count
    assert len(set(found.played.deliveries)) == len(found.played.deliveries) >= 900
    assert found.longest_link == link.short
    assert found.longest_queue >= max(each.slowed_queue for each in told) > 0
    assert 0 < found.over_slowed < 300
    assert found.cases["I"] == 300 - found.over_slowed
    assert not found.publishers_waited


def test_queue_is_told_by_seconds_since_publishing_began(rounds: list[Round]):
    assert rounds[0].slowed_queue() == [(0.0, 0), (1.0, 90), (2.0, 0)]


def test_brokers_that_leave_no_counts_are_an_error(tmp_path: Path):
    with pytest.raises(OperationFailed, match="no counts of their links"):
        read_links(tmp_path)


def test_documents_differ_in_the_algorithm_alone(scenario: Scenario, link: SlowedLink):
    bid, dnr = (
        overlay_document(scenario.topology, link, each) for each in (Algorithm.BID, Algorithm.DNR)
    )
    assert bid.replace('"bid"', '"dnr"') == dnr
    (found,) = parse_overlay(dnr, "here").configuration.shapes.items()
    assert found[0] == (link.source, link.target)
    assert found[1].bandwidth_bytes_per_s == link.bytes_per_s


def test_overlay_runs_in_processes_of_its_own_and_leaves_counts_and_nothing_else(tmp_path: Path):
    async def work() -> None:
        async with overlay_up(Supervisor(overlay_order(SMALL, tmp_path, 2))) as state:
            assert processes_in(tmp_path)
            assert str(os.getpid()) not in processes_in(tmp_path)
            statuses = await ask_all(state.addresses)
            assert all(each["ready"] for each in statuses.values())

    uvloop.run(work())
    assert not processes_in(tmp_path)
    assert len(list(tmp_path.glob("trace/*/links.parquet"))) == 4
    assert not list((tmp_path / "state").iterdir())


def test_overlay_is_stopped_when_what_used_it_fails(tmp_path: Path):
    async def work() -> None:
        async with overlay_up(Supervisor(overlay_order(SMALL, tmp_path, 2))):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        uvloop.run(work())
    assert not processes_in(tmp_path)


@pytest.mark.parametrize("moment", ["while it starts", "while it runs"])
def test_overlay_is_stopped_when_it_is_cancelled(tmp_path: Path, moment: str):
    up = asyncio.Event()

    async def use() -> None:
        async with overlay_up(Supervisor(overlay_order(SMALL, tmp_path, 2))):
            up.set()
            await asyncio.sleep(60)

    async def work() -> None:
        using = asyncio.create_task(use())
        await (up.wait() if moment == "while it runs" else asyncio.sleep(0.05))
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using

    uvloop.run(work())
    assert not processes_in(tmp_path)
    assert not list((tmp_path / "state").glob("*"))


def test_overlay_that_cannot_start_says_why(tmp_path: Path):
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "a,0").write_text("in the way", encoding="utf-8")

    async def work() -> None:
        async with overlay_up(Supervisor(overlay_order(SMALL, tmp_path, 2))):
            pytest.fail("must not come here")

    with pytest.raises(OperationFailed, match="is a file"):
        uvloop.run(work())
    assert not processes_in(tmp_path)
