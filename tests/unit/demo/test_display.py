from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console, RenderableType

from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT
from octopis.demo.comparison import Compared
from octopis.demo.display import Scene, bar, comparison_table, render, sparkline
from octopis.demo.watching import BrokerView, OverlayMoment
from octopis.demo.workload import SlowedLink

BUSY = ["b,2 → b,0", "b,2 → b,1", "a,2 → b,2", "c,1 → b,1"]


@pytest.fixture
def scene(scot: SCOT, link: SlowedLink) -> Scene:
    return Scene(scot, link, Algorithm.DNR, 3, 4, notifications=2_080, due=6_104)


@pytest.fixture
def busy(snapshot: Callable[..., OverlayMoment], scot: SCOT) -> OverlayMoment:
    brokers = {broker.short: BrokerView(0, 0.0, False) for broker in scot.brokers}
    brokers["b,2"] = BrokerView(12_345, 1_234.0, True)
    return snapshot(
        brokers=brokers,
        slowed_queue=490,
        longest_queue=12_345,
        longest_link="b,2 → b,1",
        overloaded=BUSY,
        cases={"I": 1_362},
        published=936,
        deliveries=2_640,
    )


def shown(what: RenderableType, width: int) -> str:
    console = Console(width=width, record=True, file=StringIO())
    console.print(what)
    return console.export_text()


@pytest.mark.parametrize("width", [80, 100, 120])
def test_everything_fits_and_is_there(scene: Scene, busy: OverlayMoment, width: int):
    text = shown(render(scene, [busy]), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= min(width, 100)
    assert len(text.splitlines()) <= 23
    for wanted in (
        "DNR  dynamic routing (round 3 of 4)",
        "cluster 0",
        "▶██████12,345 1.2k/s",
        "◀······     0",
        "490 wait",
        "12,345 wait",
        "b,2 → b,0, b,2 → b,1, a,2 → b,2 and 1 more",
        "I 1,362",
        "936 / 2,080",
        "2,640 / 6,104",
    ):
        assert wanted in text


def test_overlay_that_starts_has_nothing_to_show_yet(scene: Scene):
    assert "broker processes are starting" in shown(render(scene, []), 80)


def test_overlay_at_rest_says_so(scene: Scene, snapshot: Callable[..., OverlayMoment]):
    text = shown(render(scene, [snapshot()]), 80)
    assert "all queues are empty" in text
    assert "none" in text


def test_bar_grows_with_the_queue():
    assert [bar(length) for length in (0, 1, 5, 1_000_000)] == [
        "······",
        "█·····",
        "██····",
        "██████",
    ]


def test_sparkline_keeps_its_peak_and_its_width():
    assert sparkline([0, 1, 4, 8, 0], 10) == " ▁▄█ "
    assert sparkline([0] * 3, 10) == "   "
    long = sparkline([0] * 50 + [9] + [1] * 49, 40)
    assert len(long) <= 40
    assert long.count("█") == 1


def test_table_fits_a_narrow_terminal(rows: list[Compared], row: Callable[..., Compared]):
    text = shown(comparison_table(rows), 80)
    assert "BID" in text.splitlines()[1]
    assert next(line for line in text.splitlines() if "99th" in line).split()[-2:] == ["212", "ms"]
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    faulty = shown(comparison_table([*rows[:3], row(Algorithm.TNR, lost=12)]), 80)
    assert next(line for line in faulty.splitlines() if "lost" in line).split() == [
        "lost",
        "0",
        "0",
        "0",
        "12",
    ]
