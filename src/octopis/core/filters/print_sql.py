"""Terms as text in the SQL dialect: what is printed parses to the same term."""

import re

from octopis.core.filters.like import Element, Wildcard
from octopis.core.filters.operands import Arithmetic, Attribute, Literal, Operand, without_plus
from octopis.core.filters.terms import LikeTerm, PresenceTerm, Term, ValueTerm
from octopis.core.filters.values import Interval, Kind, ValueSet, only, point_of, prefix_end, union
from octopis.core.model import Value

KEYWORDS = frozenset(
    ("AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE")
)

_PLAIN_NAME = re.compile(r"(?:[^\W\d]|\$)[\w$.]*")
_EMPTY = {
    Kind.NUMBER: ("{0} < 0 AND {0} > 0", "AND"),
    Kind.TEXT: ("{0} < ''", ""),
    Kind.BOOLEAN: ("{0} = TRUE AND {0} = FALSE", "AND"),
}
_EVERYTHING = {
    Kind.NUMBER: ("{0} <= 0 OR {0} > 0", "OR"),
    Kind.TEXT: ("{0} LIKE '%'", ""),
    Kind.BOOLEAN: ("{0} IN (FALSE, TRUE)", ""),
}
_TIES = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def print_term(term: Term, beside: str = "") -> str:
    """Return the term as SQL.

    A term that needs AND or OR of its own comes in brackets where the word that it stands
    `beside` is the other one.
    """
    if isinstance(term, ValueTerm):
        text, word = _print_set(print_name(term.attribute), term.values)
        return f"({text})" if beside and word not in ("", beside) else text
    if isinstance(term, PresenceTerm):
        return f"{print_name(term.attribute)} IS {'NOT ' if term.present else ''}NULL"
    if isinstance(term, LikeTerm):
        return print_like(print_name(term.attribute), term.pattern.elements, negated=term.negated)
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
    """Return one side of a comparison, with brackets only where they are needed."""
    if isinstance(operand, Attribute):
        return print_name(operand.name)
    if isinstance(operand, Literal):
        return print_value(operand.literal)
    if _is_signed(operand):
        inner = _inside(operand.right, ties=2)
        # Two signs never stand together: "--" starts a comment in SQL.
        return f"{operand.operator}({inner})" if inner[0] in "+-" else operand.operator + inner
    ties = _TIES[operand.operator]
    left, right = _inside(operand.left, ties - 1), _inside(operand.right, ties)
    return f"{left} {operand.operator} {right}"


def _inside(operand: Operand, ties: int) -> str:
    """Return the operand, in brackets if it does not tie more closely than `ties`."""
    text = print_operand(operand)
    if not isinstance(operand, Arithmetic) or _is_signed(operand):
        return text
    return f"({text})" if _TIES[operand.operator] <= ties else text


def _is_signed(operand: Arithmetic) -> bool:
    if operand.operator == "+":  # a sum with 0 may be one, but for an attribute
        return without_plus(operand) is not operand
    return operand.operator == "-" and operand.left == Literal(0)


def nesting(text: str) -> int:
    """Return how deep brackets stand in brackets in a text in the SQL dialect."""
    depth = deepest = 0
    for character in _QUOTED.sub("", text):
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


def print_like(name: str, elements: tuple[Element, ...], *, negated: bool) -> str:
    """Return a LIKE condition, with ESCAPE only where a wildcard is meant literally."""
    literals = [element for element in elements if isinstance(element, str)]
    escaped = any("%" in text or "_" in text for text in literals)
    text = "".join(
        element.value
        if isinstance(element, Wildcard)
        else re.sub(r"([!%_])", r"!\1", element)
        if escaped
        else element
        for element in elements
    )
    operator = "NOT LIKE" if negated else "LIKE"
    return f"{name} {operator} {print_value(text)}" + (" ESCAPE '!'" if escaped else "")


def _print_set(name: str, values: ValueSet) -> tuple[str, str]:
    """Return a condition that says that the value lies in the set, and the word that joins it.

    The word is AND, OR or, where it can stand beside both, "". Single values come in one IN, and
    single values that are missing in one NOT IN, so that the text is not much longer than what
    the set was made of.
    """
    if values.is_empty() or values.complement().is_empty():
        text, word = (_EMPTY if values.is_empty() else _EVERYTHING)[values.kind]
        return text.format(name), word
    if (points := values.points()) is not None:
        return _print_members(name, points, "=", "IN"), ""
    if len(values.cuts) == 2 and not values.begins:  # the usual case: one interval
        return _print_interval(name, (values.cuts[0], values.cuts[1]))
    whole, holes = without_holes(values)
    pieces, word = _pieces(name, whole)
    text = " OR ".join(pieces)
    if not holes:
        return text, word
    missing = _print_members(name, holes, "<>", "NOT IN")
    if whole.complement().is_empty():
        return missing, ""
    # Brackets inside do; outside, AND holds together by itself.
    return (f"({text})" if word == "OR" else text) + f" AND {missing}", ""


def without_holes(values: ValueSet) -> tuple[ValueSet, list[Value]]:
    """Return the set with the single values that it leaves out put in, and those values."""
    if values.kind is Kind.BOOLEAN:
        return values, []
    gaps = map(point_of, values.complement().intervals())
    holes = [point for point in gaps if point is not None]
    return (union([values, *map(only, holes)]) if holes else values), holes


def _pieces(name: str, values: ValueSet) -> tuple[list[str], str]:
    """Return conditions that, joined by OR, say the set, and the word that joins or is in them."""
    excluded = values.complement().intervals()
    if len(excluded) == 1 and (prefix := prefix_of(excluded[0])) is not None:
        return [print_like(name, (prefix, Wildcard.MANY), negated=True)], ""
    points: list[Value] = []
    pieces: list[str] = []
    word = ""
    for interval in values.intervals():
        if (point := point_of(interval)) is not None:
            points.append(point)
        else:
            piece, word = _print_interval(name, interval)
            pieces.append(piece)
    if points:
        pieces.append(_print_members(name, points, "=", "IN"))
    return pieces, "OR" if len(pieces) > 1 else word


def _print_members(name: str, members: list[Value], single: str, several: str) -> str:
    if len(members) == 1:
        return f"{name} {single} {print_value(members[0])}"
    return f"{name} {several} ({', '.join(map(print_value, members))})"


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


def _print_interval(name: str, interval: Interval) -> tuple[str, str]:
    """Return an interval of several values as a condition, and the word in it."""
    prefix = prefix_of(interval)
    if prefix is not None:
        return print_like(name, (prefix, Wildcard.MANY), negated=False), ""
    bounds = bounds_of(interval)
    if [comparator for comparator, _ in bounds] == [">=", "<="]:
        low, high = (print_value(value) for _, value in bounds)
        return f"{name} BETWEEN {low} AND {high}", ""
    text = " AND ".join(f"{name} {comparator} {print_value(value)}" for comparator, value in bounds)
    return text, "AND" if len(bounds) > 1 else ""
