"""`octopis filter`: try subscriptions before anybody sends them."""

import sys
from typing import Annotated

import msgspec
import typer
from rich.markup import escape
from rich.tree import Tree

from octopis.cli import output
from octopis.cli.notifications import parse_attributes
from octopis.core.filters import (
    DIALECTS,
    Filter,
    FilterExplanation,
    covers,
    explain,
    parse_filter,
    warnings_for,
)
from octopis.core.filters import print_filter as print_in
from octopis.core.filters.tree import terms_of
from octopis.core.matching.alternatives import alternatives

app = typer.Typer(help="Subscriptions: check, explain, covers, convert.", no_args_is_help=True)

_FILTER_HELP = "A filter, as in \"price > 50 AND symbol = 'IBM'\"; - reads it from standard input."
FilterArgument = Annotated[str, typer.Argument(metavar="FILTER", help=_FILTER_HELP)]
DialectOption = Annotated[
    str, typer.Option("--dialect", help=f"How filters are written: {' or '.join(DIALECTS)}.")
]
_COLOURS = {"TRUE": "green", "FALSE": "red", "UNKNOWN": "yellow"}


@app.command()
def check(
    text: FilterArgument, dialect: DialectOption = "sql", as_json: output.JsonFlag = False
) -> None:
    """Say whether a filter is right, what OctopiS makes of it, and what may surprise about it."""
    text = _text(text)
    filter_ = parse_filter(text, dialect)
    warnings = warnings_for(text, dialect)
    found = alternatives(filter_.tree)
    conjunctions = None if any(each.rest for each in found) else len(found)
    facts = {
        "filter": str(filter_),
        "terms": terms_of(filter_.tree),
        "conjunctions": conjunctions,
    }
    if as_json:
        output.print_json({**facts, "warnings": warnings})
        return
    spreading = "too many to spread out: some are evaluated term by term"
    facts["conjunctions"] = spreading if conjunctions is None else conjunctions
    output.print_facts("ok", list(facts.items()))
    for warning in warnings:
        output.say(f"warning: {warning}")


@app.command(name="explain")
def explain_match(
    text: FilterArgument,
    attributes: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...", help="The notification's attributes, or one JSON object."
        ),
    ],
    dialect: DialectOption = "sql",
    as_json: output.JsonFlag = False,
) -> None:
    """Say why a filter matches a notification or not: TRUE, FALSE or UNKNOWN for each term."""
    filter_ = _read(text, dialect)
    explanation = explain(filter_, parse_attributes(attributes).attributes)
    matches = explanation.truth == "TRUE"
    if as_json:
        output.print_json({"matches": matches, "explanation": msgspec.to_builtins(explanation)})
        return
    output.console().print(_tree(explanation))
    output.say("matches" if matches else "does not match")


@app.command(name="covers")
def compare(
    wide: FilterArgument,
    narrow: FilterArgument,
    dialect: DialectOption = "sql",
    as_json: output.JsonFlag = False,
) -> None:
    """Say whether the first filter surely matches everything that the second one matches."""
    answer = covers(_read(wide, dialect), _read(narrow, dialect))
    if as_json:
        output.print_json({"covers": answer})
    else:
        output.say("yes" if answer else "no, or not provably")


@app.command()
def convert(
    text: FilterArgument,
    to: Annotated[str, typer.Option(help=f"The dialect to write: {' or '.join(DIALECTS)}.")],
    dialect: DialectOption = "sql",
    as_json: output.JsonFlag = False,
) -> None:
    """Write a filter in another dialect."""
    converted = print_in(_read(text, dialect), to)
    if as_json:
        output.print_json({"dialect": to, "filter": converted})
    else:
        output.say(converted)


def _read(text: str, dialect: str) -> Filter:
    return parse_filter(_text(text), dialect)


def _text(text: str) -> str:
    return sys.stdin.read().strip() if text == "-" else text


def _tree(explanation: FilterExplanation) -> Tree:
    colour = _COLOURS[explanation.truth]
    line = f"[{colour}]{explanation.truth:<7}[/{colour}] {escape(explanation.condition)}"
    branch = Tree(f"{line}  [dim]({escape(explanation.reason)})[/dim]")
    for part in explanation.parts:
        branch.children.append(_tree(part))
    return branch
