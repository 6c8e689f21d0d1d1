from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console

from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT
from octopis.demo import stage
from octopis.demo.display import Scene
from octopis.demo.stage import PlainStage, TerminalStage
from octopis.demo.watching import OverlayMoment
from octopis.demo.workload import SlowedLink


@pytest.fixture
def scene(scot: SCOT, link: SlowedLink) -> Scene:
    return Scene(scot, link, Algorithm.DNR, 3, 4, notifications=330, due=936)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(stage.time, "monotonic", lambda: now[0])
    return now


def test_plain_lines_come_every_few_seconds_at_most(
    scene: Scene, snapshot: Callable[..., OverlayMoment], clock: list[float]
):
    printed = StringIO()
    with PlainStage(Console(file=printed)).round(scene) as told:
        for tenth in range(70):
            clock[0] = tenth / 10
            told(snapshot(slowed_queue=tenth, cases={"I": 2}, overloaded=["b,2 → b,0"]))
    lines = printed.getvalue().splitlines()
    assert lines[0] == "Round 3 of 4, DNR, dynamic routing."
    assert lines[2:] == [
        "    3 s: 0 of 330 published, 0 of 936 delivered; 30 wait for the slowed link; overloaded "
        "links: 1; 2 went around",
        "    6 s: 0 of 330 published, 0 of 936 delivered; 60 wait for the slowed link; overloaded "
        "links: 1; 2 went around",
        "DNR is done after 7 s.",
    ]


def test_plain_text_is_neither_wrapped_nor_taken_for_markup():
    printed = StringIO()
    plain = PlainStage(Console(file=printed, width=40))
    plain.say("a [bold] word " * 10)
    with plain.doing("Working"):
        pass
    assert printed.getvalue() == "a [bold] word " * 10 + "\nWorking ...\n"


def test_terminal_shows_the_overlay_meanwhile_and_keeps_one_line(
    scene: Scene, snapshot: Callable[..., OverlayMoment]
):
    printed = StringIO()
    console = Console(file=printed, force_terminal=True, width=80, color_system=None)
    terminal = TerminalStage(console)
    with terminal.doing("Working [hard]"):
        pass
    with terminal.round(scene) as told:
        told(snapshot(slowed_queue=91, cases={"I": 3}))
        told(snapshot(slowed_queue=4, cases={"I": 7}))
    text = printed.getvalue()
    assert "✓ Working [hard] 0.0 s" in text
    assert "╭─  DNR  dynamic routing" in text
    assert "up to 91 waited for the slowed link, 7 went around" in text.splitlines()[-1]


def test_interrupt_passes_and_leaves_no_line_of_success(scene: Scene):
    printed = StringIO()
    terminal = TerminalStage(Console(file=printed, force_terminal=True, width=80))
    with pytest.raises(KeyboardInterrupt), terminal.round(scene):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), terminal.doing("Working"):
        raise KeyboardInterrupt
    assert "✓" not in printed.getvalue()
    assert printed.getvalue().count("\x1b[?25l") == printed.getvalue().count("\x1b[?25h") == 2
