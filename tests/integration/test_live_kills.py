"""Brokers die, alone and in pairs; whoever is elsewhere hardly notices, and loses nothing.

18 processes, one broker each, are started once; all blows fall one after the other.
"""

from itertools import combinations
from pathlib import Path

import pytest

from octopis.benchmarks.kills.run import Aftermath, Blow, strike
from octopis.benchmarks.live.roles import overlay_named
from support.live import run_live

OVERLAY = "figure-3"
BROKERS = overlay_named(OVERLAY).brokers
PAIRS = list(combinations(BROKERS, 2))
BLOWS = [
    *(Blow((broker,)) for broker in BROKERS[1::6]),
    *(Blow(pair) for pair in PAIRS[6::13]),
]
LIMITS = {"redial_s_max": 0.1}


@pytest.fixture(scope="module")
def aftermaths(tmp_path_factory: pytest.TempPathFactory) -> list[Aftermath]:
    found: list[Aftermath] = []
    log = tmp_path_factory.mktemp("kills") / "log"

    async def work(log: Path) -> None:
        async for each in strike(OVERLAY, "tnr", BLOWS, log, after_s=0.5, limits=LIMITS):
            found.append(each)  # noqa: PERF401 - what was found stays, should one fail

    run_live(work(log), limit_s=120.0)
    return found


def test_a_few_brokers_and_a_dozen_pairs_are_killed(aftermaths: list[Aftermath]):
    assert [each.what for each in aftermaths] == ["1 killed"] * 3 + ["2 killed"] * 12
    assert all(each.published > 8 for each in aftermaths)


def test_subscribers_elsewhere_go_on_getting_what_is_published_elsewhere(
    aftermaths: list[Aftermath],
):
    for each in aftermaths:
        assert each.cut_off == 0, each
        assert max(each.interruptions_s) < 5, each
        assert each.lost == 0, each  # what was on the wire to the dead is sent again


def test_nobody_gets_anything_twice(aftermaths: list[Aftermath]):
    assert [each.duplicates for each in aftermaths] == [0] * len(BLOWS)


def test_all_tables_are_equal_soon_after_the_dead_are_back(aftermaths: list[Aftermath]):
    for each in aftermaths:
        assert each.equal_s < 5, each
