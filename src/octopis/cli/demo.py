"""`octopis demo`: the best whole thing that works so far."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from octopis.cli import output
from octopis.cli.path_tree import print_paths
from octopis.cli.pictures import ENDINGS, write_figure, write_pictures
from octopis.cli.topology import PLAN_LABELS
from octopis.filters import parse_filter
from octopis.model import BrokerId, Notification
from octopis.routing import Algorithm
from octopis.routing.drawing import draw_explanation
from octopis.routing.explainer import explain
from octopis.routing.explanation import Explanation, as_document
from octopis.routing.question import Question, Subscriber
from octopis.topology import Plan, from_catalogue, plan

_OVERLAYS = ("figure-3", "paper")
_ROUTED = "figure-7"


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the pictures.")] = Path("out/demo"),
    as_json: output.JsonFlag = False,
) -> None:
    """Show the paper's overlays, and how a notification goes around overloaded links."""
    plans = {name: plan(from_catalogue(name).scot) for name in _OVERLAYS}
    routes = [explain(_question(), algorithm) for algorithm in (Algorithm.SNR, Algorithm.DNR)]
    pictures = _draw(out, routes)
    if as_json:
        output.print_json(
            {
                "overlays": {name: asdict(facts) for name, facts in plans.items()},
                "routes": [as_document(route) for route in routes],
                "pictures": pictures,
            }
        )
        return
    _show_overlays(plans)
    _show_routes(routes)
    output.say("Pictures: " + ", ".join(str(path) for path in pictures if path.suffix == ".png"))
    output.say('Next: octopis --help, or octopis route explain --help for your own "what if".')


def _question() -> Question:
    """Case II of the paper's Figure 7: both target iCOLs of the publisher's host are overloaded."""
    scot = from_catalogue(_ROUTED).scot
    host = BrokerId("b", 2)
    wanted = {
        "S1": ("c", 0, "symbol = 'IBM' AND price > 50"),
        "S2": ("c", 1, "price BETWEEN 55 AND 65"),
        "S3": ("a", 2, "symbol LIKE 'I%' AND NOT price < 60"),
        "S4": ("c", 2, "volume IS NULL OR volume > 1000"),
    }
    return Question(
        scot,
        host,
        Notification.checked({"symbol": "IBM", "price": 60, "volume": 2000}),
        tuple(
            Subscriber(name, BrokerId(region, cluster), parse_filter(text))
            for name, (region, cluster, text) in wanted.items()
        ),
        overloaded=frozenset((host, other) for other in scot.secondary_neighbours(host)),
        queue_lengths={(host, BrokerId("a", 2)): 1},
    )


def _draw(out: Path, routes: list[Explanation]) -> list[Path]:
    pictures = []
    for name in _OVERLAYS:
        paths = [out / f"{name}{ending}" for ending in ENDINGS]
        write_pictures(from_catalogue(name), paths)
        pictures += paths
    for route in routes:
        paths = [out / f"{_ROUTED}-{route.algorithm.value}{ending}" for ending in ENDINGS]
        write_figure(draw_explanation(route, _ROUTED), paths)
        pictures += paths
    return pictures


def _show_overlays(plans: dict[str, Plan]) -> None:
    output.say(
        "OctopiS joins brokers into a SCOT: copies of one tree (the clusters), with every broker\n"
        "linked to its twins in all other copies (its region). So each link has parallel ones.\n"
    )
    facts = [asdict(each) for each in plans.values()]
    rows = [(label, *(each[field] for each in facts)) for field, label in PLAN_LABELS.items()]
    output.print_table("Two overlays of the paper", ("", *plans), rows)
    largest = plans[_OVERLAYS[-1]]
    output.say(
        f"\nIn the paper's evaluation overlay a subscription reaches all {largest.brokers} brokers "
        f"with {largest.ims_two_step} messages\n"
        f"instead of {largest.ims_flooding} by flooding. Whichever {largest.tolerated_deaths} "
        f"brokers die, the others stay connected.\n"
    )


def _show_routes(routes: list[Explanation]) -> None:
    output.say(
        "Now four subscribers, and a publisher whose links to other clusters are all overloaded.\n"
        "Static routing (SNR) waits in those queues. Dynamic routing (DNR) lets a copy within the\n"
        "cluster take the pending clusters along as a bit vector, and crosses where links are free:"
    )
    for name, broker, wanted in routes[0].question.subscribers:
        output.say(f"  {name} at {broker} wants {wanted}")
    output.say("")
    for route in routes:
        print_paths(route)
