"""Why a filter matches a notification or not: each term with its truth and the reason."""

import msgspec

from octopis.core.filters.filter import Filter
from octopis.core.filters.operands import Attributes
from octopis.core.filters.print_sql import print_value
from octopis.core.filters.terms import ComparisonTerm, LikeTerm, PresenceTerm, Term, Truth
from octopis.core.filters.tree import And, Node, Or, text_of
from octopis.core.filters.values import Kind, kind_of
from octopis.core.model import Value
from octopis.core.model.notification import plain_attributes

_NAMES = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}


class FilterExplanation(msgspec.Struct, frozen=True):
    """One condition: what it says, TRUE, FALSE or UNKNOWN, why, and the conditions inside it."""

    condition: str
    truth: str
    reason: str
    parts: tuple["FilterExplanation", ...] = ()


def explain(filter_: Filter, attributes: Attributes) -> FilterExplanation:
    """Return why `filter_` does or does not match a notification with these attributes."""
    return _explained(filter_.tree, plain_attributes(attributes))


def _explained(node: Node, attributes: Attributes) -> FilterExplanation:
    found = node.truth(attributes)
    if not isinstance(node, And | Or):
        return FilterExplanation(text_of(node), _NAMES[found], _reason(node, attributes))
    parts = tuple(_explained(child, attributes) for child in node.children)
    return FilterExplanation(
        text_of(node), _NAMES[found], _reason_of_parts(node, found, parts), parts
    )


def _reason_of_parts(node: And | Or, found: Truth, parts: tuple[FilterExplanation, ...]) -> str:
    if not parts:
        return "it always is"
    wanted = _NAMES[found]
    holders = sum(part.truth == wanted for part in parts)
    if found is isinstance(node, And):
        return f"all {len(parts)} parts are {wanted}"
    return f"{holders} of {len(parts)} parts {'is' if holders == 1 else 'are'} {wanted}"


def _reason(term: Term, attributes: Attributes) -> str:
    if isinstance(term, ComparisonTerm):
        return _reason_of_comparison(term, attributes)
    value = attributes.get(term.attribute)
    if value is None:
        return f"{term.attribute} is absent"
    shown = f"{term.attribute} is {_shortened(value)}"
    wanted = (
        None
        if isinstance(term, PresenceTerm)
        else Kind.TEXT
        if isinstance(term, LikeTerm)
        else term.values.kind
    )
    if wanted is not None and kind_of(value) is not wanted:
        return f"{shown}, which is a {kind_of(value).value} and not a {wanted.value}"
    return shown


def _reason_of_comparison(term: ComparisonTerm, attributes: Attributes) -> str:
    names = sorted(term.left.names() | term.right.names())
    absent = [name for name in names if name not in attributes]
    if absent:
        return f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} absent"
    known = ", ".join(f"{name} is {_shortened(attributes[name])}" for name in names)
    known += ": " if names else ""
    left, right = term.left.value(attributes), term.right.value(attributes)
    if left is None or right is None:
        return f"{known}the arithmetic has no result"
    sides = f"{_shortened(left)} against {_shortened(right)}"
    return f"{known}{sides}" + (", which do not compare" if term.truth(attributes) is None else "")


def _shortened(value: Value) -> str:
    if isinstance(value, int) and value.bit_length() > 256:  # too long to print, or to read
        return f"an integer of {value.bit_length()} bits"
    shown = print_value(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
