"""Random conditions for tests of the filter language, with a second, naive reading of each.

A condition is drawn as nested tuples. From it come a text in the SQL dialect, an object built in
Python, and, by `truth_of`, its truth by the book: Kleene's logic on plain Python values.
"""

import math
import operator
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

from hypothesis import strategies as st

from octopis.core.filters import Filter, attr
from octopis.core.filters.tree import ALWAYS

Drawn = Any
"""A drawn condition or operand: (what it is, its parts ...)."""

NAMES = ("a", "b", "c", "and", 'odd "name"', "l\u0131ke", "\u0130n", "li\u212ae", "true.$_")
INTEGERS = (0, 1, -1, 7, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62 + 1)
FLOATS = (0.0, -0.0, 0.5, -2.5, 1.0, 2.0**53, 2.0**63, -(2.0**63), 1e300, 5e-324)
TEXTS = (
    "", "\0", "a", "a\0", "ab", "aab", "b", "it's", "%", "_", "!", "a AND b", " ", "\u00e9",
    "\ud7ff", "\ud7ffa", "\ue000", "\U0010ffff", "a\U0010ffff", "a\U0010ffffb",
)  # fmt: skip


def words(alphabet: str, length_max: int) -> list[str]:
    """Return all words of each length; each length is as many words as any other."""
    by_length = [list(product(alphabet, repeat=length)) for length in range(length_max + 1)]
    most = len(by_length[-1])
    return ["".join(word) for found in by_length for word in found * (most // len(found))]


def any_of(*groups: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Draw from each group equally often, in one choice: that is what drawing costs."""
    most = max(map(len, groups))
    return st.sampled_from([each for group in groups for each in [*group] * (most // len(group))])


DIGITS, WORDS = range(-9, 10), words("ab%_!'\0", 4)
NUMBERS = any_of(INTEGERS + FLOATS, DIGITS)
TEXT = any_of(TEXTS, WORDS)
VALUES = any_of(INTEGERS + FLOATS, DIGITS, TEXTS, WORDS, (False, True))
NAME = any_of(NAMES[:3], NAMES)
NOTIFICATIONS = st.dictionaries(NAME, VALUES, max_size=5)
COMPARATORS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
COMPARATOR = st.sampled_from(tuple(COMPARATORS))

# Drawing conditions


def grown(attributes: st.SearchStrategy[Drawn]) -> st.SearchStrategy[Drawn]:
    sign = st.sampled_from("+-*/%")
    number = NUMBERS.map(lambda number: ("value", number))
    return (
        st.tuples(sign, attributes, attributes | number)
        | st.tuples(sign, number, attributes)
        | st.tuples(st.sampled_from(("negative", "positive")), attributes)
    )


ATTRIBUTE = NAME.map(lambda name: ("attribute", name))
OPERAND = st.recursive(ATTRIBUTE, grown, max_leaves=4)
PATTERN = any_of(words("ab%_", 6), [text + "%" for text in TEXTS], [word + "%" for word in WORDS])


@st.composite
def compared(draw: st.DrawFn) -> Drawn:
    if draw(st.booleans()):
        right = ("value", draw(NUMBERS)) if draw(st.booleans()) else draw(OPERAND)
        return ("compared", draw(COMPARATOR), draw(OPERAND), right)
    value = draw(VALUES)
    comparator = draw(st.sampled_from(("=", "<>")) if isinstance(value, bool) else COMPARATOR)
    sides = [draw(ATTRIBUTE), ("value", value)]
    return ("compared", comparator, *(sides[::-1] if draw(st.booleans()) else sides))


SAME_KIND = st.tuples(NUMBERS, NUMBERS) | st.tuples(TEXT, TEXT)
TERM = (
    compared()
    | st.tuples(st.just("between"), NAME, SAME_KIND)
    | st.tuples(st.just("in"), NAME, st.lists(VALUES, min_size=1, max_size=5))
    | st.tuples(st.just("like"), NAME, PATTERN, st.sampled_from((None, "!")))
    | st.tuples(st.just("null"), NAME)
    | st.tuples(st.just("boolean"), NAME)
    | st.tuples(st.just("always"))
)


def joined(parts: st.SearchStrategy[Drawn]) -> st.SearchStrategy[Drawn]:
    several = st.lists(parts, min_size=2, max_size=4)
    return (
        st.tuples(st.just("and"), several)
        | st.tuples(st.just("or"), several)
        | st.tuples(st.just("not"), parts)
    )


CONDITION = st.recursive(TERM, joined, max_leaves=10)

# Three readings of a drawn condition


def sql(drawn: Drawn) -> str:  # noqa: C901, PLR0911, PLR0912 - a case for each form
    match drawn:
        case ("attribute", name):
            return '"' + name.replace('"', '""') + '"'
        case ("value", bool(value)):
            return str(value)
        case ("value", str(value)):
            return "'" + value.replace("'", "''") + "'"
        case ("value", value):
            return repr(value)
        case ("negative", inner):
            return f"-({sql(inner)})"
        case ("positive", inner):
            return f"+({sql(inner)})"
        case ("compared", comparator, left, right):
            return f"{sql(left)} {comparator} {sql(right)}"
        case ("between", name, (low, high)):
            where = sql(("attribute", name))
            return f"{where} between {sql(('value', low))} And {sql(('value', high))}"
        case ("in", name, members):
            shown = ",".join(sql(("value", member)) for member in members)
            return f"{sql(('attribute', name))} IN({shown})"
        case ("like", name, pattern, escape):
            shown = f"{sql(('attribute', name))} Like {sql(('value', escaped(pattern, escape)))}"
            return shown + (f" ESCAPE {sql(('value', escape))}" if escape else "")
        case ("null", name):
            return f"{sql(('attribute', name))} is null"
        case ("boolean", name):
            return sql(("attribute", name))
        case ("always",):
            return "TRUE"
        case ("not", part):
            return f"NOT ({sql(part)})"
        case ("and" | "or" as word, parts):
            return f" {word} ".join(f"({sql(part)})" for part in parts)
        case (sign, left, right):
            return f"({sql(left)}) {sign} ({sql(right)})"
    raise AssertionError(drawn)


def escaped(pattern: str, escape: str | None) -> str:
    """With an escape, `_` is meant literally in these tests, and `%` is not."""
    return pattern.replace("!", "!!").replace("_", "!_") if escape else pattern


def python(drawn: Drawn) -> Any:  # noqa: C901, PLR0911, PLR0912 - a case for each form
    match drawn:
        case ("attribute", name):
            return attr(name)
        case ("value", value):
            return value
        case ("negative", inner):
            return -python(inner)
        case ("positive", inner):
            return +python(inner)
        case ("compared", comparator, left, right):
            return COMPARATORS[comparator](python(left), python(right))
        case ("between", name, (low, high)):
            return attr(name).between(low, high)
        case ("in", name, members):
            return attr(name).is_in(members)
        case ("like", name, pattern, escape):
            return attr(name).like(escaped(pattern, escape), escape)
        case ("null", name):
            return attr(name).is_null()
        case ("boolean", name):
            return attr(name).is_true()
        case ("always",):
            return Filter(ALWAYS)
        case ("not", part):
            return ~python(part)
        case ("and", parts):
            return reduce(operator.and_, map(python, parts))
        case ("or", parts):
            return reduce(operator.or_, map(python, parts))
        case (sign, left, right):
            signs = {"+": operator.add, "-": operator.sub, "*": operator.mul}
            signs |= {"/": operator.truediv, "%": operator.mod}
            return signs[sign](python(left), python(right))
    raise AssertionError(drawn)


def truth_of(drawn: Drawn, attributes: dict[str, Any]) -> bool | None:  # noqa: C901, PLR0911 - a case for each form
    match drawn:
        case ("compared", comparator, left, right):
            return compare(comparator, value_of(left, attributes), value_of(right, attributes))
        case ("between", name, (low, high)):
            value = attributes.get(name)
            return kleene_and([compare(">=", value, low), compare("<=", value, high)])
        case ("in", name, members):
            return kleene_or([compare("=", attributes.get(name), member) for member in members])
        case ("like", name, pattern, escape):
            value = attributes.get(name)
            if not isinstance(value, str):
                return None
            return is_like(value, pattern, wild="%" if escape else "%_")
        case ("null", name):
            return name not in attributes
        case ("boolean", name):
            return compare("=", attributes.get(name), True)
        case ("always",):
            return True
        case ("not", part):
            return kleene_not(truth_of(part, attributes))
        case ("and", parts):
            return kleene_and([truth_of(part, attributes) for part in parts])
        case ("or", parts):
            return kleene_or([truth_of(part, attributes) for part in parts])
    raise AssertionError(drawn)


def kleene_not(found: bool | None) -> bool | None:
    return None if found is None else not found


def kleene_and(found: list[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True


def kleene_or(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


def compare(comparator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None or kind(left) != kind(right):
        return None
    if isinstance(left, bool) and comparator not in ("=", "<>"):
        return None
    exact = [side if isinstance(side, str) else Fraction(side) for side in (left, right)]
    return COMPARATORS[comparator](*exact)


def kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def value_of(drawn: Drawn, attributes: dict[str, Any]) -> Any:
    match drawn:
        case ("attribute", name):
            return attributes.get(name)
        case ("value", value):
            whole = isinstance(value, float) and value.is_integer()
            return int(value) if whole and -(2**63) <= value < 2**63 else value
        case ("negative", inner):
            return calculated("-", 0, value_of(inner, attributes))
        case ("positive", inner):
            return calculated("+", 0, value_of(inner, attributes))
        case (sign, left, right):
            return calculated(sign, value_of(left, attributes), value_of(right, attributes))
    raise AssertionError(drawn)


def calculated(sign: str, left: Any, right: Any) -> Any:
    if type(left) not in (int, float) or type(right) not in (int, float):
        return None
    if sign in "/%" and right == 0:
        return None
    try:
        if sign == "%" and type(left) is type(right) is int:
            return left - right * math.trunc(Fraction(left, right))
        signs = {"+": operator.add, "-": operator.sub, "*": operator.mul}
        signs |= {"/": operator.truediv, "%": math.fmod}
        result = signs[sign](left, right)
    except OverflowError:
        return None
    return result if isinstance(result, int) or math.isfinite(result) else None


def is_like(text: str, pattern: str, wild: str = "%_") -> bool:
    meanings = {"%": ".*", "_": "."}
    expression = "".join(
        meanings[character] if character in wild else re.escape(character) for character in pattern
    )
    return re.fullmatch(expression, text, re.DOTALL) is not None


def made(drawn: Drawn) -> Filter:
    found: Filter = python(drawn)
    return found
