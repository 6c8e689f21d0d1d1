from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console, RenderableType

from octopis.demo.fault.cast import Cast
from octopis.demo.fault.display import FaultScene, fault_line, render_fault
from octopis.demo.fault.moment import FaultMoment, VictimState
from octopis.demo.stage import PlainStage, TerminalStage

Make = Callable[..., FaultMoment]


@pytest.fixture
def scene(cast: Cast) -> FaultScene:
    return FaultScene(cast, per_s=200, number=5)


@pytest.fixture
def moment() -> Make:
    """Make a moment half a second after the kill, but for what is said."""

    def make(**facts: object) -> FaultMoment:
        values = {
            "elapsed_s": 2.5,
            "published": 500,
            "delivered": 1_990,
            "rates": [80] * 20 + [60] + [80] * 4,
            "ims_per_s": {"d,0": 400.0, "e,0": 1_234.0},
            "victim": VictimState.DEAD,
            "since_kill_s": 0.5,
            "known": 0,
            "longest_gap_ms": 34.5,
        }
        return FaultMoment(**{**values, **facts})

    return make


def shown(what: RenderableType, width: int) -> str:
    console = Console(width=width, record=True, file=StringIO())
    console.print(what)
    return console.export_text()


@pytest.mark.parametrize("width", [80, 100, 120])
def test_everything_fits_and_the_dead_broker_is_crossed_out(
    scene: FaultScene, moment: Make, width: int
):
    text = shown(render_fault(scene, moment()), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= min(width, 100)
    assert len(text.splitlines()) <= 23
    for wanted in (
        "TNR  a broker on the way is killed (scene 5)",
        "✗ b,0  dead",
        "P d,0   400/s",
        "S c,1",
        "e,0  1.2k/s",
        "████████████████████▆████",
        "780 a second",
        "B(b, 0) is dead, 0.5 s after the kill",
        "34.5 ms",
        "of 2,000 that are due so far",
        "1,990",
    ):
        assert wanted in text


def test_overlay_that_starts_has_nothing_to_show_yet(scene: FaultScene):
    text = " ".join(shown(render_fault(scene, None), 100).replace("│", " ").split())
    assert "broker processes are starting" in text
    assert "18 brokers, each in a process of its own, route by TNR" in text
    assert "through which the way to B(a, 0) and B(c, 1) leads" in text


def test_broker_that_is_back_is_no_longer_crossed_out(scene: FaultScene, moment: Make):
    now = moment(victim=VictimState.BACK, known=3, ims_per_s={"b,0": 7.0})
    text = shown(render_fault(scene, now), 100)
    assert "↻ b,0     7/s" in text
    assert "✗ b,0" not in text
    assert "B(b, 0) runs again, knows 3 of 4 subscriptions" in text


def test_what_came_before_the_kill_has_a_colour_of_its_own(scene: FaultScene, moment: Make):
    console = Console(width=100, file=StringIO(), force_terminal=True, color_system="standard")
    console.print(render_fault(scene, moment()))
    text = console.file.getvalue()
    assert "\x1b[32m" + "█" * 20 + "\x1b[0m\x1b[33m" + "▆████" in text


def test_line_says_how_it_goes(scene: FaultScene, moment: Make):
    before = moment(victim=VictimState.RUNS, since_kill_s=None, longest_gap_ms=None, rates=[])
    assert fault_line(scene, before) == (
        "   2.5 s: 500 published, 1,990 delivered, 0 a second; B(b, 0) runs"
    )
    whole = fault_line(scene, moment(victim=VictimState.WHOLE, known=4))
    assert whole.endswith("knows all 4 subscriptions; longest gap behind it 34.5 ms")


def test_plain_lines_come_every_second_and_whenever_something_becomes_of_the_broker(
    scene: FaultScene, moment: Make
):
    printed = StringIO()
    told_of = [
        (0.4, VictimState.RUNS),
        (1.1, VictimState.RUNS),
        (1.5, VictimState.DEAD),
        (1.6, VictimState.DEAD),
        (1.7, VictimState.WHOLE),
    ]
    with PlainStage(Console(file=printed)).fault(scene) as told:
        for elapsed_s, victim in told_of:
            told(moment(elapsed_s=elapsed_s, victim=victim))
    lines = printed.getvalue().splitlines()
    assert lines[0] == "Scene 5, TNR: a broker on the way is killed."
    assert [line.split(":")[0].strip() for line in lines[2:]] == ["1.1 s", "1.5 s", "1.7 s"]


def test_terminal_shows_the_scene_meanwhile_and_keeps_one_line(scene: FaultScene, moment: Make):
    printed = StringIO()
    console = Console(file=printed, force_terminal=True, width=100, color_system=None)
    with TerminalStage(console).fault(scene) as told:
        told(moment())
        told(moment(longest_gap_ms=41.0))
    assert "✗ b,0  dead" in printed.getvalue()
    last = printed.getvalue().splitlines()[-1]
    assert "✓ TNR, a broker on the way is killed: the longest gap behind it was 41.0 ms" in last


def test_interrupt_leaves_no_line_of_success(scene: FaultScene):
    printed = StringIO()
    terminal = TerminalStage(Console(file=printed, force_terminal=True, width=80))
    with pytest.raises(KeyboardInterrupt), terminal.fault(scene):
        raise KeyboardInterrupt
    assert "✓" not in printed.getvalue()
