"""How the scene is shown: the grid with the dead broker crossed out, and what is delivered."""

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.demo.comparison import shown_ms
from octopis.demo.display import WIDTH_MAX, shown_rate, sparkline
from octopis.demo.fault.cast import Cast
from octopis.demo.fault.moment import FaultMoment, VictimState
from octopis.demo.fault.record import BUCKET_S
from octopis.report.pictures import LOOKS

TITLE = "a broker on the way is killed"
_SPARKS = 40
_PER_S = round(1 / BUCKET_S)
_LEGEND = " Each broker: its IMs a second. P publisher, S subscriber, ✗ killed, ↻ started again."


@dataclass(frozen=True)
class FaultScene:
    """What does not change during the scene."""

    cast: Cast
    per_s: int
    number: int

    def introduction(self) -> str:
        """Say what is about to happen."""
        cast = self.cast
        return (
            f"{len(cast.scot.brokers)} brokers, each in a process of its own, route by TNR. A "
            f"publisher at {cast.host} sends {self.per_s} notifications a second to subscribers "
            f"at {len(cast.subscribers)} brokers. Then {cast.victim} is killed, through which the "
            f"way to {cast.names_behind()} leads."
        )


def render_fault(scene: FaultScene, now: FaultMoment | None) -> RenderableType:
    """Return the picture of a moment; None while the overlay starts."""
    look = LOOKS[Algorithm.TNR]
    title = Text.assemble(
        (f" {look.label} ", f"bold white on {look.colour}"),
        f" {TITLE} ",
        (f"(scene {scene.number}) ", "dim"),
    )
    parts: list[RenderableType] = [Text(scene.introduction(), style="italic"), Text()]
    if now is None:
        parts.append(Text("broker processes are starting", style="dim"))
    else:
        parts += [_grid(scene.cast, now), Text(_LEGEND, style="dim"), Text(), _facts(scene, now)]
    return Panel(
        Group(*parts), title=title, title_align="left", border_style=look.colour, width=WIDTH_MAX
    )


def _grid(cast: Cast, now: FaultMoment) -> Table:
    table = Table(box=None, padding=(0, 1), expand=True)
    table.add_column("region", style="bold", no_wrap=True, width=6)
    for cluster in cast.scot.clusters:
        table.add_column(f"cluster {cluster}", no_wrap=True, ratio=1)
    for region in cast.scot.regions:
        table.add_row(region, *(_cell(cast, now, each) for each in cast.scot.region(region)))
    return table


def _cell(cast: Cast, now: FaultMoment, broker: BrokerId) -> Text:
    if broker == cast.victim and now.victim is VictimState.DEAD:
        return Text(f"✗ {broker.short}  dead", style="bold red strike")
    mark = "P" if broker == cast.host else "S" if broker in cast.subscribers else " "
    rate = now.ims_per_s.get(broker.short, 0.0)
    style = "green" if rate >= 1 else "dim"
    if broker == cast.victim and now.victim is not VictimState.RUNS:
        mark, style = "↻", "bold yellow"
    return Text.assemble((mark, "bold yellow"), (f" {broker.short} {shown_rate(rate):>7}", style))


def _facts(scene: FaultScene, now: FaultMoment) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1), expand=True)
    table.add_column(style="cyan", no_wrap=True, width=13)
    table.add_column(ratio=1)
    table.add_column(justify="right", no_wrap=True, width=15)
    table.add_row("deliveries", _sparks(now), f"{delivered_per_s(now):,} a second")
    table.add_row("the broker", victim_sentence(scene.cast, now), "")
    gap = "-" if now.longest_gap_ms is None else shown_ms(now.longest_gap_ms)
    table.add_row("longest gap", "behind it, since the kill", gap)
    table.add_row("published", "", f"{now.published:,}")
    due = now.published * len(scene.cast.subscribers)
    table.add_row("delivered", f"of {due:,} that are due so far", f"{now.delivered:,}")
    return table


def _sparks(now: FaultMoment) -> Text:
    """Return the deliveries of the last seconds; what came before the kill is green."""
    shown = now.rates[-_SPARKS:]
    line = sparkline(shown, _SPARKS)
    since = 0 if now.since_kill_s is None else min(len(shown), round(now.since_kill_s / BUCKET_S))
    cut = len(shown) - since
    return Text.assemble((line[:cut], "green"), (line[cut:], "yellow"))


def delivered_per_s(now: FaultMoment) -> int:
    """Return what came in the last second."""
    return sum(now.rates[-_PER_S:]) * _PER_S // max(1, len(now.rates[-_PER_S:]))


def victim_sentence(cast: Cast, now: FaultMoment) -> str:
    """Say what has become of the broker that is killed."""
    everybody = len(cast.subscribers)
    since = "" if now.since_kill_s is None else f"{now.since_kill_s:.1f} s"
    return {
        VictimState.RUNS: f"{cast.victim} runs",
        VictimState.DEAD: f"{cast.victim} is dead, {since} after the kill",
        VictimState.BACK: f"{cast.victim} runs again, knows {now.known} of {everybody} "
        "subscriptions",
        VictimState.WHOLE: f"{cast.victim} runs again, knows all {everybody} subscriptions",
    }[now.victim]


def fault_line(scene: FaultScene, now: FaultMoment) -> str:
    """Return how it is going, as one line."""
    gap = ""
    if now.longest_gap_ms is not None:
        gap = f"; longest gap behind it {shown_ms(now.longest_gap_ms)}"
    return (
        f"  {now.elapsed_s:4.1f} s: {now.published:,} published, {now.delivered:,} delivered, "
        f"{delivered_per_s(now):,} a second; {victim_sentence(scene.cast, now)}{gap}"
    )
