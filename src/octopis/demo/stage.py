"""Where the demonstration is shown: a terminal that moves, or plain lines."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.markup import escape

from octopis.demo.comparison import shown_ms, went_around
from octopis.demo.display import WIDTH_MAX, Scene, render
from octopis.demo.fault.display import TITLE, FaultScene, fault_line, render_fault
from octopis.demo.fault.moment import FaultMoment, VictimState
from octopis.demo.texts import IDEAS, TITLES
from octopis.demo.watching import OverlayMoment
from octopis.report.pictures import LOOKS

EVERY_S = 3.0
"""How often plain lines say how far a round is."""

FAULT_EVERY_S = 1.0
"""How often plain lines say how the last scene goes."""

OnMoment = Callable[[OverlayMoment], None]
OnFaultMoment = Callable[[FaultMoment], None]


class Stage(Protocol):
    """What the demonstration is told to, as it goes."""

    def say(self, text: str) -> None:
        """Show a paragraph."""

    def doing(self, what: str) -> AbstractContextManager[None]:
        """Show that something is being done meanwhile."""

    def round(self, scene: Scene) -> AbstractContextManager[OnMoment]:
        """Show a round meanwhile; what is given is told how the overlay is."""

    def fault(self, scene: FaultScene) -> AbstractContextManager[OnFaultMoment]:
        """Show the scene in which a broker is killed; what is given is told how it goes."""


class PlainStage:
    """Lines for a log or a pipe."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, text: str) -> None:
        """Print a paragraph as one line."""
        self._console.print(escape(text), soft_wrap=True)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Print what begins."""
        self.say(f"{what} ...")
        yield

    @contextmanager
    def round(self, scene: Scene) -> Iterator[OnMoment]:
        """Print a line every few seconds."""
        label, begin = LOOKS[scene.algorithm].label, time.monotonic()
        self.say(f"Round {scene.number} of {scene.rounds}, {label}, {TITLES[scene.algorithm]}.")
        self.say(f"{label} {IDEAS[scene.algorithm]}")
        last = begin

        def show(now: OverlayMoment) -> None:
            nonlocal last
            if time.monotonic() - last >= EVERY_S:
                last = time.monotonic()
                self.say(progress_line(scene, now, last - begin))

        yield show
        self.say(f"{label} is done after {time.monotonic() - begin:.0f} s.")

    @contextmanager
    def fault(self, scene: FaultScene) -> Iterator[OnFaultMoment]:
        """Print a line every second, and whenever something has become of the broker."""
        self.say(f"Scene {scene.number}, TNR: {TITLE}.")
        self.say(scene.introduction())
        last_s, state = 0.0, VictimState.RUNS

        def show(now: FaultMoment) -> None:
            nonlocal last_s, state
            if now.victim is not state or now.elapsed_s - last_s >= FAULT_EVERY_S:
                last_s, state = now.elapsed_s, now.victim
                self.say(fault_line(scene, now))

        yield show


class TerminalStage:
    """A terminal: what is under way moves, what is done stays as one line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = min(WIDTH_MAX, console.width)

    def say(self, text: str) -> None:
        """Print a paragraph, wrapped."""
        self._console.print(escape(text), width=self._width)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Let something turn meanwhile."""
        begin = time.monotonic()
        with self._console.status(escape(what)):
            yield
        self._done(what, time.monotonic() - begin)

    @contextmanager
    def round(self, scene: Scene) -> Iterator[OnMoment]:
        """Draw the overlay whenever it was looked at."""
        begin, seen = time.monotonic(), list[OverlayMoment]()
        picture = render(scene, seen)
        with Live(picture, console=self._console, auto_refresh=False, transient=True) as live:

            def show(now: OverlayMoment) -> None:
                seen.append(now)
                live.update(render(scene, seen), refresh=True)

            yield show
        label = LOOKS[scene.algorithm].label
        longest = max((each.slowed_queue for each in seen), default=0)
        around = sum(went_around(seen[-1].cases).values()) if seen else 0
        self._done(
            f"{label}, {TITLES[scene.algorithm]}: up to {longest:,} waited for the slowed link"
            f"{f', {around:,} went around' if around else ''}",
            time.monotonic() - begin,
        )

    @contextmanager
    def fault(self, scene: FaultScene) -> Iterator[OnFaultMoment]:
        """Draw the overlay with the broker that is killed, again and again."""
        begin, last = time.monotonic(), list[FaultMoment]()
        picture = render_fault(scene, None)
        with Live(picture, console=self._console, auto_refresh=False, transient=True) as live:

            def show(now: FaultMoment) -> None:
                last[:] = [now]
                live.update(render_fault(scene, now), refresh=True)

            yield show
        gap_ms = last[0].longest_gap_ms if last else None
        self._done(
            f"TNR, {TITLE}: the longest gap behind it was {shown_ms(gap_ms)}",
            time.monotonic() - begin,
        )

    def _done(self, what: str, seconds: float) -> None:
        self._console.print(f"[green]✓[/green] {escape(what)} [dim]{seconds:.1f} s[/dim]")


def progress_line(scene: Scene, now: OverlayMoment, seconds: float) -> str:
    """Return how far a round is, as one line."""
    around = sum(went_around(now.cases).values())
    return (
        f"  {seconds:3.0f} s: {now.published:,} of {scene.notifications:,} published, "
        f"{now.deliveries:,} of {scene.due:,} delivered; {now.slowed_queue:,} wait for the slowed "
        f"link; overloaded links: {len(now.overloaded)}"
        f"{f'; {around:,} went around' if around else ''}"
    )
