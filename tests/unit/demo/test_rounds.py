from pathlib import Path

import pytest
import uvloop

from octopis.core.routing import Algorithm
from octopis.demo.rounds import Round, play_round, read_links
from octopis.demo.watching import OverlayMoment
from octopis.demo.workload import SlowedLink
from octopis.errors import OperationFailed
from octopis.scenario.folder import Scenario


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
