"""Terms as text in the SQL dialect: what is printed parses to the same term."""

import re

from octopis.filters.like import LikePattern, Wildcard
from octopis.filters.operands import Attribute, Literal, Operand
from octopis.filters.terms import LikeTerm, PresenceTerm, Term, ValueTerm
from octopis.filters.values import Interval, Kind, ValueSet, cut_after, prefix_end
from octopis.model import Value

KEYWORDS = frozenset(
    ("AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE")
)

_PLAIN_NAME = re.compile(r"(?:[^\W\d]|\$)[\w$.]*")
_EMPTY = {
    Kind.NUMBER: ["{0} < 0 AND {0} > 0"],
    Kind.TEXT: ["{0} < ''"],
    Kind.BOOLEAN: ["{0} = TRUE AND {0} = FALSE"],
}
_EVERYTHING = {
    Kind.NUMBER: ["{0} <= 0", "{0} > 0"],
    Kind.TEXT: ["{0} LIKE '%'"],
    Kind.BOOLEAN: ["{0} IN (FALSE, TRUE)"],
}


def print_term(term: Term, beside: str = "") -> str:
    """Return the term as SQL.

    A term that needs AND or OR of its own comes in brackets where the word that it stands
    `beside` is the other one.
    """
    if isinstance(term, ValueTerm):
        pieces = _pieces(print_name(term.attribute), term.values)
        word = "OR" if len(pieces) > 1 else "AND" if _is_pair(pieces[0], term) else beside
        text = " OR ".join(pieces)
        return text if not beside or word == beside else f"({text})"
    if isinstance(term, PresenceTerm):
        return f"{print_name(term.attribute)} IS {'NOT ' if term.present else ''}NULL"
    if isinstance(term, LikeTerm):
        return print_like(print_name(term.attribute), term.pattern, negated=term.negated)
    return f"{print_operand(term.left)} {term.comparator} {print_operand(term.right)}"


def print_name(name: str) -> str:
    """Return an attribute's name, in double quotes where it is not a plain word."""
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def print_value(value: Value) -> str:
    """Return a literal."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def print_operand(operand: Operand) -> str:
    """Return one side of a comparison; arithmetic inside arithmetic stands in brackets."""
    if isinstance(operand, Attribute):
        return print_name(operand.name)
    if isinstance(operand, Literal):
        return print_value(operand.literal)
    return f"({print_operand(operand.left)} {operand.operator} {print_operand(operand.right)})"


def print_like(name: str, pattern: LikePattern, *, negated: bool) -> str:
    """Return a LIKE condition, with ESCAPE only where a wildcard is meant literally."""
    literals = [element for element in pattern.elements if isinstance(element, str)]
    escaped = any("%" in text or "_" in text for text in literals)
    text = "".join(
        element.value
        if isinstance(element, Wildcard)
        else re.sub(r"([!%_])", r"!\1", element)
        if escaped
        else element
        for element in pattern.elements
    )
    operator = "NOT LIKE" if negated else "LIKE"
    return f"{name} {operator} {print_value(text)}" + (" ESCAPE '!'" if escaped else "")


def _is_pair(piece: str, term: ValueTerm) -> bool:
    return " AND " in piece and f"{print_name(term.attribute)} BETWEEN " not in piece


def _pieces(name: str, values: ValueSet) -> list[str]:
    """Return conditions on `name` that joined by OR say that its value lies in `values`."""
    outside = values.complement()
    if values.is_empty():
        return [piece.format(name) for piece in _EMPTY[values.kind]]
    if outside.is_empty():
        return [piece.format(name) for piece in _EVERYTHING[values.kind]]
    for members, single, several in (
        (values.points(), "=", "IN"),
        (outside.points(), "<>", "NOT IN"),
    ):
        if members and len(members) == 1:
            return [f"{name} {single} {print_value(members[0])}"]
        if members:
            return [f"{name} {several} ({', '.join(map(print_value, members))})"]
    excluded = outside.intervals()
    if len(excluded) == 1 and (prefix := prefix_of(excluded[0])) is not None:
        return [print_like(name, LikePattern((prefix, Wildcard.MANY)), negated=True)]
    return [print_interval(name, interval) for interval in values.intervals()]


def prefix_of(interval: Interval) -> str | None:
    """Return the prefix whose texts are just this interval, if there is one."""
    low, high = interval
    if low is None or not isinstance(low[0], str) or not low[0]:
        return None
    end = prefix_end(low[0])
    return low[0] if high == ((end, 0) if end else None) else None


def bounds_of(interval: Interval) -> list[tuple[str, Value]]:
    """Return the interval as comparisons: ('>=', 3), ('<', 5)."""
    bounds: list[tuple[str, Value]] = []
    for cut, before, after in ((interval[0], ">=", ">"), (interval[1], "<", "<=")):
        if cut is None:
            continue
        value, side = cut
        if isinstance(value, str) and value.endswith("\0"):  # just after the text without NUL
            value, side = value[:-1], 1
        bounds.append((after if side else before, value))
    return bounds


def print_interval(name: str, interval: Interval) -> str:
    """Return one interval as a condition."""
    low, high = interval
    if low is not None and cut_after(low[0]) == high:
        return f"{name} = {print_value(low[0])}"
    prefix = prefix_of(interval)
    if prefix is not None:
        return print_like(name, LikePattern((prefix, Wildcard.MANY)), negated=False)
    bounds = bounds_of(interval)
    if [comparator for comparator, _ in bounds] == [">=", "<="]:
        return f"{name} BETWEEN {print_value(bounds[0][1])} AND {print_value(bounds[1][1])}"
    return " AND ".join(f"{name} {comparator} {print_value(value)}" for comparator, value in bounds)
