"""`octopis demo`: the best whole thing that works so far."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from octopis.cli import output
from octopis.cli.pictures import ENDINGS, write_pictures
from octopis.cli.topology import print_plan
from octopis.topology import NamedTopology, Plan, from_catalogue, plan

_OVERLAYS = ("figure-3", "paper")


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the pictures.")] = Path("out/demo"),
    as_json: output.JsonFlag = False,
) -> None:
    """Draw and explain the paper's overlays."""
    topologies = [from_catalogue(name) for name in _OVERLAYS]
    pictures = {
        each.name: [out / f"{each.name}{ending}" for ending in ENDINGS] for each in topologies
    }
    for topology in topologies:
        write_pictures(topology, pictures[topology.name])
    if as_json:
        output.print_json(
            [
                {
                    "name": each.name,
                    "plan": asdict(plan(each.scot)),
                    "pictures": pictures[each.name],
                }
                for each in topologies
            ]
        )
        return
    output.say(
        "OctopiS joins brokers into a SCOT: copies of one tree (the clusters), with every broker\n"
        "linked to its twins in all other copies (its region). Congested links have parallel ones."
    )
    for topology in topologies:
        _explain(topology, pictures[topology.name])


def _explain(topology: NamedTopology, pictures: list[Path]) -> None:
    facts = plan(topology.scot)
    output.say("")
    print_plan(topology.description, facts)
    output.say(_in_words(facts))
    output.say(f"Pictures: {', '.join(map(str, pictures))}")


def _in_words(facts: Plan) -> str:
    return (
        f"A subscription reaches all {facts.brokers} brokers with {facts.ims_two_step} messages "
        f"instead of {facts.ims_flooding} by flooding,\n"
        f"over paths of at most {facts.longest_path} links. "
        f"Whichever {facts.tolerated_deaths} brokers die, the others stay connected."
    )
