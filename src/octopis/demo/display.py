"""How the overlay is shown while it plays: brokers as a grid, queues, cases, progress."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT
from octopis.demo.comparison import FACTS, MUST_BE_NONE, Compared, shown_cases, went_around
from octopis.demo.texts import IDEAS, TITLES
from octopis.demo.watching import OverlayMoment
from octopis.demo.workload import SlowedLink
from octopis.report.pictures import LOOKS

WIDTH_MAX = 100
_BLOCKS = " ▁▂▃▄▅▆▇█"
_BAR = 6
_FEW_LINKS = 3
_SPARKS = 40
_LEGEND = " Each broker: what waits in its queues, IMs a second. ▶ ◀: the slowed link."


@dataclass(frozen=True)
class Scene:
    """What does not change during a round."""

    scot: SCOT
    link: SlowedLink
    algorithm: Algorithm
    number: int
    rounds: int
    notifications: int
    due: int


def render(scene: Scene, seen: Sequence[OverlayMoment]) -> RenderableType:
    """Return the picture after the latest of the snapshots."""
    look = LOOKS[scene.algorithm]
    title = Text.assemble(
        (f" {look.label} ", f"bold white on {look.colour}"),
        f" {TITLES[scene.algorithm]} ",
        (f"(round {scene.number} of {scene.rounds}) ", "dim"),
    )
    idea = Text(f"{look.label} {IDEAS[scene.algorithm]}", style="italic")
    parts: list[RenderableType] = [idea, Text()]
    if seen:
        parts += [_grid(scene, seen[-1]), Text(_LEGEND, style="dim"), Text(), _facts(scene, seen)]
    else:
        parts.append(Text("broker processes are starting", style="dim"))
    return Panel(
        Group(*parts), title=title, title_align="left", border_style=look.colour, width=WIDTH_MAX
    )


def _grid(scene: Scene, now: OverlayMoment) -> Table:
    """Regions down, clusters across: aCOLs stay in a column, iCOLs stay in a row."""
    table = Table(box=None, padding=(0, 1), expand=True)
    table.add_column("region", style="bold", no_wrap=True, width=6)
    for cluster in scene.scot.clusters:
        table.add_column(f"cluster {cluster}", no_wrap=True, ratio=1)
    for region in scene.scot.regions:
        cells = [_cell(scene, now, broker.short) for broker in scene.scot.region(region)]
        table.add_row(region, *cells)
    return table


def _cell(scene: Scene, now: OverlayMoment, broker: str) -> Text:
    view = now.brokers[broker]
    mark = " "
    if broker == scene.link.source.short:
        mark = "▶"
    elif broker == scene.link.target.short:
        mark = "◀"
    style = "bold red" if view.overloaded else "green" if view.ims_per_s >= 1 else "dim"
    return Text.assemble(
        (mark, "bold yellow"),
        (bar(view.queued), style),
        (f"{view.queued:>6,}", style),
        (f" {shown_rate(view.ims_per_s):>6}", "dim"),
    )


def _facts(scene: Scene, seen: Sequence[OverlayMoment]) -> Table:
    now = seen[-1]
    table = Table(box=None, show_header=False, padding=(0, 1), expand=True)
    table.add_column(style="cyan", no_wrap=True, width=13)
    table.add_column(ratio=1)
    table.add_column(justify="right", no_wrap=True, width=15)
    queues = [each.slowed_queue for each in seen]
    slowed = Text.assemble(
        ("▶◀ ", "bold yellow"), f"{scene.link.short}  ", (sparkline(queues, _SPARKS), "yellow")
    )
    table.add_row("slowed link", slowed, f"{now.slowed_queue:,} wait")
    longest = now.longest_link if now.longest_queue else Text("all queues are empty", style="dim")
    table.add_row("longest queue", longest, f"{now.longest_queue:,} wait")
    table.add_row("overloaded", _links(now.overloaded), "")
    table.add_row("went around", shown_cases(went_around(now.cases)), "")
    for name, done, total in (
        ("published", now.published, scene.notifications),
        ("delivered", now.deliveries, scene.due),
    ):
        bar_of = ProgressBar(total=max(1, total), completed=done)
        table.add_row(name, bar_of, f"{done:,} / {total:,}")
    return table


def _links(overloaded: Sequence[str]) -> Text:
    if not overloaded:
        return Text("none", style="dim")
    more = f" and {len(overloaded) - _FEW_LINKS} more" if len(overloaded) > _FEW_LINKS else ""
    return Text(", ".join(overloaded[:_FEW_LINKS]) + more, style="bold red")


def shown_rate(per_s: float) -> str:
    """Return a rate in at most six characters; none where there is next to nothing."""
    if per_s >= 999.5:
        return f"{per_s / 1000:.1f}k/s"
    return f"{per_s:.0f}/s" if per_s >= 1 else ""


def bar(length: int) -> str:
    """Return a queue as a bar: one more block whenever it is twice as long, roughly."""
    blocks = min(_BAR, (length.bit_length() + 1) // 2)
    return "█" * blocks + "·" * (_BAR - blocks)


def sparkline(lengths: Sequence[int], width: int) -> str:
    """Return how a queue went, in at most `width` characters; the highest is its longest."""
    step = max(1, -(-len(lengths) // width))
    peaks = [max(lengths[at : at + step]) for at in range(0, len(lengths), step)]
    top = max((*peaks, 1))
    return "".join(_BLOCKS[-(-peak * (len(_BLOCKS) - 1) // top)] for peak in peaks)


def comparison_table(rows: Sequence[Compared]) -> Table:
    """Return the rounds side by side, narrow enough for any terminal."""
    table = Table(title="One slowed link, four algorithms", title_justify="left", box=None)
    table.title_style = "bold"
    table.add_column()
    for row in rows:
        style = f"bold {LOOKS[row.algorithm].colour}"
        table.add_column(row.label, justify="right", header_style=style)
    for fact, *cells in zip(FACTS, *(row.cells() for row in rows), strict=True):
        shown = [f"{cell:,}" if isinstance(cell, int) else cell for cell in cells]
        if fact in MUST_BE_NONE:
            shown = [f"[{'red' if cell else 'green'}]{cell}[/]" for cell in cells]
        table.add_row(fact, *shown)
    return table
