"""Where the demonstration is shown: a terminal that moves, or plain lines."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.markup import escape

from octopis.demo.comparison import shown_cases
from octopis.demo.display import WIDTH_MAX, Scene, render
from octopis.demo.texts import IDEAS, TITLES
from octopis.demo.watching import OverlayMoment
from octopis.report.pictures import LOOKS

EVERY_S = 3.0
"""How often plain lines say how far a round is."""

OnMoment = Callable[[OverlayMoment], None]


class Stage(Protocol):
    """What the demonstration is told to, as it goes."""

    def say(self, text: str) -> None:
        """Show a paragraph."""

    def doing(self, what: str) -> AbstractContextManager[None]:
        """Show that something is being done meanwhile."""

    def round(self, scene: Scene) -> AbstractContextManager[OnMoment]:
        """Show a round meanwhile; what is given is told how the overlay is."""


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
        cases = f", cases {shown_cases(seen[-1].cases)}" if seen and any(seen[-1].cases) else ""
        self._done(
            f"{label}, {TITLES[scene.algorithm]}: up to {longest:,} waited for the slowed link"
            f"{cases}",
            time.monotonic() - begin,
        )

    def _done(self, what: str, seconds: float) -> None:
        self._console.print(f"[green]✓[/green] {escape(what)} [dim]{seconds:.1f} s[/dim]")


def progress_line(scene: Scene, now: OverlayMoment, seconds: float) -> str:
    """Return how far a round is, as one line."""
    cases = f"; cases {shown_cases(now.cases)}" if any(now.cases.values()) else ""
    return (
        f"  {seconds:3.0f} s: {now.published:,} of {scene.notifications:,} published, "
        f"{now.deliveries:,} of {scene.due:,} delivered; {now.slowed_queue:,} wait for the slowed "
        f"link; overloaded links: {len(now.overloaded)}{cases}"
    )
