"""`octopis route`: see where a notification goes and why, and by which cases brokers decide."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.tree import Tree

from octopis.cli import output
from octopis.cli.notifications import parse_attributes
from octopis.cli.options import WHAT_ALGORITHMS_ARE
from octopis.cli.pictures import check_picture_paths, write_figure
from octopis.cli.question import from_file, from_words
from octopis.cli.topology import load
from octopis.core.filters.print_sql import print_value
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.algorithms.dnr import CASES, Case
from octopis.core.topology import NamedTopology
from octopis.errors import InvalidConfiguration
from octopis.explain.cases import COLUMNS, rows
from octopis.explain.explainer import explain
from octopis.explain.explanation import Hop, Loss, RouteExplanation, as_document
from octopis.explain.pictures import draw_cases, draw_explanation
from octopis.explain.question import Question

app = typer.Typer(
    help="Routing: explain a path, show the cases.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

PictureOption = Annotated[
    list[Path] | None,
    typer.Option("--svg", "--png", metavar="FILE", help="Draw it into a .svg or .png file."),
]
OverlayArgument = Annotated[
    str, typer.Argument(metavar="[NAME]", help="An overlay of the catalogue, or a TOML file.")
]
AttributesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ATTRIBUTE=VALUE...]", help="The notification: price=12, or one JSON object."
    ),
]
PublishOption = Annotated[
    str, typer.Option(metavar="BROKER", help="The publisher's broker, such as b,2.")
]
SubscriberOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=BROKER:FILTER", help="A subscriber; without a filter it gets everything."
    ),
]
OverloadedOption = Annotated[
    list[str] | None, typer.Option(metavar="FROM:TO", help="An overloaded link, in this direction.")
]
DeadOption = Annotated[
    list[str] | None, typer.Option(metavar="BROKER", help="A dead broker; its neighbours know.")
]
CutOption = Annotated[
    list[str] | None,
    typer.Option(metavar="ONE:OTHER", help="A link that is cut, in both directions."),
]
QueueOption = Annotated[
    list[str] | None,
    typer.Option(metavar="FROM:TO=MESSAGES", help="How many messages wait for a link."),
]
FileOption = Annotated[
    Path | None, typer.Option(help="Read the whole question from this TOML file instead.")
]
AlgorithmOption = Annotated[
    list[Algorithm] | None,
    typer.Option(help=f"One of the algorithms alone; all by default. {WHAT_ALGORITHMS_ARE}"),
]


@app.command(name="explain")
def explain_route(  # noqa: PLR0913, PLR0917 - each is an option of the command
    name: OverlayArgument = "",
    attributes: AttributesArgument = None,
    publish: PublishOption = "",
    subscriber: SubscriberOption = None,
    overloaded: OverloadedOption = None,
    queue: QueueOption = None,
    dead: DeadOption = None,
    cut: CutOption = None,
    file: FileOption = None,
    algorithm: AlgorithmOption = None,
    picture: PictureOption = None,
    force: output.ForceFlag = False,
    as_json: output.JsonFlag = False,
) -> None:
    """Say which way a notification takes under each algorithm, hop by hop, and why.

    Options may be given several times. Case I of the paper's Figure 7:

      octopis route explain figure-7 price=12 --publish b,2
      --subscriber "S1=c,0: price > 10" --subscriber S2=c,1 --subscriber S3=a,2
      --subscriber S4=c,2 --overloaded b,2:b,0

    With --dead b,0 or --cut b,2:b,0 the link is not slow but gone: see who goes around it.
    """
    algorithms = list(dict.fromkeys(algorithm or Algorithm))
    paths = [_named(path, each, algorithms) for each in algorithms for path in picture or ()]
    check_picture_paths(paths, force=force)
    if file is None:
        topology = _overlay(name, publish)
        question = from_words(
            topology,
            publish=publish,
            notification=parse_attributes(attributes or []),
            subscribers=subscriber or (),
            overloaded=overloaded or (),
            queues=queue or (),
            dead=dead or (),
            cut=cut or (),
        )
    else:
        asked = (name, attributes, publish, subscriber, overloaded, queue, dead, cut)
        if any(asked):
            raise InvalidConfiguration(f"the whole question stands in {file}: give no part of it")
        topology, question = from_file(file)
    _answer(topology, question, algorithms, picture, as_json)


@app.command(name="cases")
def show_cases(
    picture: PictureOption = None,
    force: output.ForceFlag = False,
    as_json: output.JsonFlag = False,
) -> None:
    """Show the cases of dynamic routing: the table that the brokers decide by."""
    check_picture_paths(picture or [], force=force)
    if as_json:
        output.print_json([_as_document(case) for case in CASES])
    else:
        output.print_table("Cases of dynamic routing, tried from the top", COLUMNS, rows())
    if picture:
        write_figure(draw_cases(), picture)
        _say_written(picture, as_json)


def _overlay(name: str, publish: str) -> NamedTopology:
    if not name:
        raise InvalidConfiguration("name an overlay, such as figure-7, or give --file")
    if not publish:
        raise InvalidConfiguration("say where the publisher is, as in --publish b,2")
    return load(name)


def _answer(
    topology: NamedTopology,
    question: Question,
    algorithms: list[Algorithm],
    pictures: list[Path] | None,
    as_json: bool,
) -> None:
    answers = [explain(question, algorithm) for algorithm in algorithms]
    if as_json:
        output.print_json([as_document(answer) for answer in answers])
    else:
        for answer in answers:
            _print_paths(answer)
        _print_totals(answers)
    for answer in answers if pictures else ():
        paths = [_named(path, answer.algorithm, algorithms) for path in pictures or ()]
        _draw(topology, answer, paths, as_json)


def _draw(
    topology: NamedTopology, answer: RouteExplanation, paths: list[Path], as_json: bool
) -> None:
    write_figure(draw_explanation(answer, topology.name), paths)
    _say_written(paths, as_json)


def _named(path: Path, algorithm: Algorithm, algorithms: list[Algorithm]) -> Path:
    """Return the picture's path, with the algorithm in its name where there are several."""
    if len(algorithms) == 1:
        return path
    return path.with_name(f"{path.stem}-{algorithm.value}{path.suffix}")


def _say_written(paths: list[Path], as_json: bool) -> None:
    for path in paths if not as_json else ():
        output.say(f"wrote {path}")


def _as_document(case: Case) -> dict[str, Any]:
    return {
        "name": case.name,
        "overloaded_icol": case.overloaded_icol,
        "free_icol": case.free_icol,
        "free_acol": case.free_acol,
        "carrier": case.carrier.value,
        "reason": case.reason.value,
    }


def _print_paths(explanation: RouteExplanation) -> None:
    """Print the way of the notification, hop by hop."""
    question = explanation.question
    attributes = question.notification.attributes.items()
    shown = ", ".join(f"{name} = {print_value(value)}" for name, value in attributes)
    published = escape(f"{question.publisher} publishes {shown or 'a notification'}")
    root = Tree(published + _reached(explanation.reached_at_host))
    branches: dict[int | None, Tree] = {None: root}
    for number, hop in enumerate(explanation.hops):
        branches[number] = branches[hop.after].add(_line(explanation, hop))
    for loss in explanation.losses:
        branches[loss.after].add(_lost_line(explanation, loss))
    for after, _, targets in explanation.unreachable:
        named = ", ".join(f"{each}{' (dead)' * (each in question.dead)}" for each in targets)
        branches[after].add(f"[red]no way leads on to {escape(named)}: lost[/red]")
    output.console().print(
        f"[bold]{explanation.algorithm.value.upper()}[/bold]: {_sum(explanation)}"
    )
    output.console().print(root)
    output.say("")


def _print_totals(explanations: Sequence[RouteExplanation]) -> None:
    """Print IMs, cases and lengths of paths, one column for each algorithm."""
    columns = ["", *(each.algorithm.value.upper() for each in explanations)]
    lines = [
        ["IMs", *(str(each.ims) for each in explanations)],
        ["cases", *(_decisions(each) or "-" for each in explanations)],
    ]
    paths = [each.paths for each in explanations]
    question = explanations[0].question
    interested = {each.name for each in question.interested}
    for name, broker, _ in question.subscribers:
        none = "lost" if name in interested else "no match"
        lengths = [str(len(found[name])) if name in found else none for found in paths]
        lines.append([f"brokers on the path to {name} at {broker}", *lengths])
    output.print_table("Totals", columns, lines)


def _line(explanation: RouteExplanation, hop: Hop) -> str:
    line = f"{hop.kind.value} to [bold]{escape(str(hop.target))}[/bold]"
    if hop.overloaded:
        line += " [yellow](overloaded)[/yellow]"
    line += _carried(explanation, hop)
    if hop.tried:
        clusters = (f"{each} (down)" if each in hop.tried_down else f"{each}" for each in hop.tried)
        line += f" [red]tried {' '.join(clusters)}[/red]"
    return f"{line} [dim]- {escape(hop.reason.in_words)}[/dim]{_reached(hop.reached)}"


def _lost_line(explanation: RouteExplanation, loss: Loss) -> str:
    line = f"{loss.kind.value} to [bold]{escape(str(loss.target))}[/bold]"
    line += _carried(explanation, loss)
    is_dead = loss.target in explanation.question.dead
    return f"{line} [red]- {'a dead broker' if is_dead else 'the link is cut'}: lost[/red]"


def _carried(explanation: RouteExplanation, copy: Hop | Loss) -> str:
    if copy.cbv_p:
        return f" [red]CBV_p {explanation.bits(copy)}[/red]"
    if copy.targets:
        word = "targets" if explanation.algorithm is Algorithm.TNR else "BIDs"
        return f" [red]{word} {escape(_shown(copy.targets))}[/red]"
    return ""


def _shown(brokers: Sequence[BrokerId]) -> str:
    return " ".join(each.short for each in brokers)


def _reached(names: Sequence[str]) -> str:
    return f" [green]=> {escape(', '.join(names))}[/green]" if names else ""


def _sum(explanation: RouteExplanation) -> str:
    decisions = f", {_decisions(explanation)}" if explanation.cases else ""
    reached = f"{len(explanation.paths)} of {len(explanation.question.subscribers)} subscribers"
    lost = f", [red]lost: {escape(', '.join(explanation.lost))}[/red]" if explanation.lost else ""
    return f"{explanation.ims} IMs{decisions}, {reached} reached{lost}"


def _decisions(explanation: RouteExplanation) -> str:
    return ", ".join(f"{words} x{count}" for words, count in explanation.decisions.items())
