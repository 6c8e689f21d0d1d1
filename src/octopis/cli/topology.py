"""`octopis topology`: look at overlays, check them, plan them, draw them."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from octopis.cli import output
from octopis.cli.pictures import check_picture_paths, write_pictures
from octopis.core.model import BrokerId
from octopis.core.topology import (
    SCOT,
    NamedTopology,
    OverlayPlan,
    catalogue_names,
    format_topology,
    from_catalogue,
    grow,
    parse_topology,
    plan,
)
from octopis.errors import InvalidConfiguration, InvalidTopology
from octopis.report.pictures import ENDINGS

app = typer.Typer(help="Overlays: list, show, check, plan, draw.", no_args_is_help=True)

TopologyArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A name from `octopis topology list`, or a TOML file.")
]

PLAN_LABELS = {
    "brokers": "brokers",
    "regions": "regions",
    "clusters": "clusters",
    "edge_brokers": "edge brokers",
    "inner_brokers": "inner brokers",
    "acols": "aCOLs (within clusters)",
    "icols": "iCOLs (between clusters)",
    "diameter": "diameter of the tree",
    "longest_path": "longest path",
    "ims_two_step": "IMs per subscription, two-step broadcast",
    "ims_flooding": "IMs per subscription, flooding",
    "tolerated_deaths": "broker deaths that always leave the rest connected",
}


@app.command("list")
def list_topologies(as_json: output.JsonFlag = False) -> None:
    """List the overlays of the catalogue."""
    rows = [_row(from_catalogue(name)) for name in catalogue_names()]
    if as_json:
        output.print_json(rows)
        return
    columns = ("name", "regions", "clusters", "brokers", "description")
    output.print_table("Overlays", columns, [[row[column] for column in columns] for row in rows])


@app.command()
def show(
    name: TopologyArgument,
    broker: Annotated[
        str, typer.Option(metavar="REGION,CLUSTER", help="Show this broker alone, as in b,2.")
    ] = "",
    as_json: output.JsonFlag = False,
) -> None:
    """Show an overlay: its figures, its brokers, their kinds and neighbours."""
    topology = load(name)
    scot = topology.scot
    brokers = [scot.broker(broker)] if broker else scot.brokers
    rows = [_broker(scot, one) for one in brokers]
    if as_json:
        output.print_json(
            {
                "name": topology.name,
                "description": topology.description,
                "plan": asdict(plan(scot)),
                "brokers": rows,
            }
        )
        return
    if not broker:
        print_plan(f"{topology.name}: {topology.description}".removesuffix(": "), plan(scot))
        output.say("")
    lines = [
        (
            row["broker"],
            row["kind"],
            " ".join(row["primary_neighbours"]),
            " ".join(row["secondary_neighbours"]),
        )
        for row in rows
    ]
    columns = ("broker", "kind", "primary neighbours", "secondary neighbours")
    output.print_table("Brokers", columns, lines)


@app.command()
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A TOML file with a topology.")],
    as_json: output.JsonFlag = False,
) -> None:
    """Check that a file describes an overlay; say which property fails, and where."""
    topology = load(file)
    facts = plan(topology.scot)
    if as_json:
        output.print_json({"ok": True, "name": topology.name, "plan": asdict(facts)})
        return
    output.say(f"ok: {topology.name} has all four properties of a SCOT")
    print_plan("", facts)


@app.command("plan")
def plan_topology(  # noqa: PLR0913, PLR0917 - each is an option of the command
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="An overlay; or give --brokers and --clusters.")
    ] = "",
    brokers: Annotated[
        int | None, typer.Option(help="Grow an overlay of at least so many brokers.")
    ] = None,
    clusters: Annotated[int | None, typer.Option(help="Into how many clusters.")] = None,
    fanout: Annotated[
        int | None, typer.Option(help="How many children a region has at most (3).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the overlay that was grown to this TOML file.")
    ] = None,
    force: output.ForceFlag = False,
    as_json: output.JsonFlag = False,
) -> None:
    """Say what an overlay costs and bears: links, paths, messages, deaths."""
    if name:
        if any(option is not None for option in (brokers, clusters, fanout, out)):
            raise InvalidConfiguration(
                "give the name of an overlay, or what to grow one from (--brokers, --clusters, "
                "--fanout, --out), not both"
            )
        topology = load(name)
    else:
        topology = _grown(brokers, clusters, 3 if fanout is None else fanout)
    if out is not None:
        output.check_new([out], force=force)
        output.write_text(out, format_topology(topology))
    if as_json:
        output.print_json({"name": topology.name, "plan": asdict(plan(topology.scot))})
        return
    print_plan(f"Plan of {topology.name}", plan(topology.scot))
    if out is not None:
        output.say(f"wrote {out}")


@app.command()
def draw(
    name: TopologyArgument,
    out: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A .svg or .png file; may be given several times."),
    ] = None,
    force: output.ForceFlag = False,
) -> None:
    """Draw an overlay: regions as columns, clusters as rows; many regions go on below.

    Writes NAME.svg and NAME.png, unless told otherwise.
    """
    topology = load(name)
    paths = out or [Path(Path(name).stem + ending) for ending in ENDINGS]
    check_picture_paths(paths, force=force)
    write_pictures(topology, paths)
    for path in paths:
        output.say(f"wrote {path}")


def load(name: str) -> NamedTopology:
    """Return the overlay of the catalogue or of the file that the user named."""
    path = Path(name)
    if name in catalogue_names() or not (path.suffix == ".toml" or path.exists()):
        return from_catalogue(name)
    try:
        return parse_topology(output.read_text(path), str(path))
    except InvalidTopology as failure:
        raise InvalidConfiguration(f"{path}: {failure}") from failure


def print_plan(title: str, facts: OverlayPlan) -> None:
    """Print a plan for people."""
    values = asdict(facts)
    output.print_facts(title, [(label, values[field]) for field, label in PLAN_LABELS.items()])


def _row(topology: NamedTopology) -> dict[str, Any]:
    return {
        "name": topology.name,
        "description": topology.description,
        "regions": len(topology.scot.regions),
        "clusters": len(topology.scot.clusters),
        "brokers": len(topology.scot.brokers),
    }


def _broker(scot: SCOT, broker: BrokerId) -> dict[str, Any]:
    return {
        "broker": broker.short,
        "kind": "edge" if scot.is_edge(broker) else "inner",
        "primary_neighbours": [other.short for other in scot.primary_neighbours(broker)],
        "secondary_neighbours": [other.short for other in scot.secondary_neighbours(broker)],
    }


def _grown(brokers: int | None, clusters: int | None, fanout: int) -> NamedTopology:
    if brokers is None or clusters is None:
        raise InvalidConfiguration("give the name of an overlay, or both --brokers and --clusters")
    scot = grow(brokers, clusters, fanout)
    return NamedTopology(
        f"grown-{len(scot.regions)}x{len(scot.clusters)}",
        f"Grown for at least {brokers} brokers in {clusters} clusters, fanout {fanout}.",
        scot,
    )
