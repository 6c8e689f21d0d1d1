"""How explanations are printed: a tree of hops, and the totals side by side."""

from collections.abc import Sequence

from rich.markup import escape
from rich.tree import Tree

from octopis.cli import output
from octopis.filters.print_sql import print_value
from octopis.routing.explanation import Explanation, Hop


def print_paths(explanation: Explanation) -> None:
    """Print the way of the notification, hop by hop."""
    question = explanation.question
    attributes = question.notification.attributes.items()
    shown = ", ".join(f"{name} = {print_value(value)}" for name, value in attributes)
    published = escape(f"{question.publisher} publishes {shown or 'a notification'}")
    root = Tree(published + _reached(explanation.reached_at_host))
    branches: list[Tree] = []
    for hop in explanation.hops:
        before = root if hop.after is None else branches[hop.after]
        branches.append(before.add(_line(explanation, hop)))
    output.console().print(
        f"[bold]{explanation.algorithm.value.upper()}[/bold]: {_sum(explanation)}"
    )
    output.console().print(root)
    output.say("")


def print_totals(explanations: Sequence[Explanation]) -> None:
    """Print IMs, cases and lengths of paths, one column for each algorithm."""
    columns = ["", *(each.algorithm.value.upper() for each in explanations)]
    lines = [
        ["IMs", *(str(each.ims) for each in explanations)],
        ["cases", *(_cases(each) or "-" for each in explanations)],
    ]
    paths = [each.paths for each in explanations]
    for name, broker, _ in explanations[0].question.subscribers:
        lengths = [str(len(found[name])) if name in found else "no match" for found in paths]
        lines.append([f"brokers on the path to {name} at {broker}", *lengths])
    output.print_table("Totals", columns, lines)


def _line(explanation: Explanation, hop: Hop) -> str:
    line = f"{hop.kind.value} to [bold]{escape(str(hop.target))}[/bold]"
    if hop.overloaded:
        line += " [yellow](overloaded)[/yellow]"
    if hop.cbv_p:
        line += f" [red]CBV_p {explanation.bits(hop)}[/red]"
    if hop.bids:
        line += f" [red]BIDs {escape(' '.join(bid.short for bid in hop.bids))}[/red]"
    return f"{line} [dim]- {escape(hop.reason.in_words)}[/dim]{_reached(hop.reached)}"


def _reached(names: Sequence[str]) -> str:
    return f" [green]=> {escape(', '.join(names))}[/green]" if names else ""


def _sum(explanation: Explanation) -> str:
    cases = f", {_cases(explanation)}" if explanation.cases else ""
    reached = f"{len(explanation.paths)} of {len(explanation.question.subscribers)} subscribers"
    return f"{explanation.ims} IMs{cases}, {reached} reached"


def _cases(explanation: Explanation) -> str:
    return ", ".join(f"case {name} x{count}" for name, count in explanation.cases.items())
