"""A filter as a function, for whoever asks the same one of every notification.

    topic = 'orders' AND price < 1000

A tree has no NOT (tree.py), so it is TRUE exactly where enough of its terms are: what is UNKNOWN
need not be told from FALSE. The terms that most filters are made of are looked at directly; all
others are asked as ever. A property test holds it to `Filter.matches`.
"""

from collections.abc import Callable

from octopis.core.filters.filter import Filter
from octopis.core.filters.operands import Attributes
from octopis.core.filters.terms import ValueTerm
from octopis.core.filters.tree import And, Node, Or
from octopis.core.filters.values import Cut, Kind

Test = Callable[[Attributes], bool]


def quick(filter_: Filter) -> Test:
    """Return what tells of plain attributes, as they come over the wire, whether they match."""
    return _test(filter_.tree)


def _test(node: Node) -> Test:
    if isinstance(node, And):
        return _all(tuple(map(_test, node.children)))
    if isinstance(node, Or):
        return _any(tuple(map(_test, node.children)))
    found = _value_test(node) if isinstance(node, ValueTerm) else None
    if found is not None:
        return found
    truth = node.truth
    return lambda attributes: truth(attributes) is True


def _value_test(term: ValueTerm) -> Test | None:
    """Return a test for some texts, for all but some, or for a range of numbers."""
    name, values = term.attribute, term.values
    if values.kind is Kind.TEXT:
        if (points := values.points()) is not None:
            return _is_one_of(name, frozenset(points))
        if (others := values.complement().points()) is not None:
            return _is_none_of(name, frozenset(others))
    elif values.kind is Kind.NUMBER and len(values.cuts) == 1:
        return _is_beyond(name, values.cuts[0], begins=values.begins)
    elif values.kind is Kind.NUMBER and len(values.cuts) == 2 and not values.begins:
        low, high = values.cuts
        return _all((_is_beyond(name, low, begins=False), _is_beyond(name, high, begins=True)))
    return None


def _all(tests: tuple[Test, ...]) -> Test:
    if len(tests) == 2:  # most often
        one, other = tests
        return lambda attributes: one(attributes) and other(attributes)

    def holds(attributes: Attributes) -> bool:
        for test in tests:  # noqa: SIM110 - a generator takes twice as long
            if not test(attributes):
                return False
        return True

    return holds


def _any(tests: tuple[Test, ...]) -> Test:
    def holds(attributes: Attributes) -> bool:
        for test in tests:  # noqa: SIM110 - as above
            if test(attributes):
                return True
        return False

    return holds


def _is_one_of(name: str, texts: frozenset[object]) -> Test:
    """Return a test for some texts; no value of another kind is equal to one."""
    return lambda attributes: attributes.get(name) in texts


def _is_none_of(name: str, texts: frozenset[object]) -> Test:
    """Return a test for all texts but some."""

    def holds(attributes: Attributes) -> bool:
        value = attributes.get(name)
        return type(value) is str and value not in texts

    return holds


def _is_beyond(name: str, cut: Cut, *, begins: bool) -> Test:
    """Return a test for numbers on one side of a cut; a boolean is none."""
    bound, side = cut

    def below(attributes: Attributes) -> bool:
        value = attributes.get(name)
        kind = type(value)
        return (kind is float or kind is int) and value < bound  # type: ignore[operator]

    def up_to(attributes: Attributes) -> bool:
        value = attributes.get(name)
        kind = type(value)
        return (kind is float or kind is int) and value <= bound  # type: ignore[operator]

    def above(attributes: Attributes) -> bool:
        value = attributes.get(name)
        kind = type(value)
        return (kind is float or kind is int) and value > bound  # type: ignore[operator]

    def from_on(attributes: Attributes) -> bool:
        value = attributes.get(name)
        kind = type(value)
        return (kind is float or kind is int) and value >= bound  # type: ignore[operator]

    if begins:
        return up_to if side else below
    return above if side else from_on
