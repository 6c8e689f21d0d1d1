"""What a subscriber asks for, in its normal form."""

from typing import NoReturn

import msgspec

from octopis.core.filters.operands import Attributes
from octopis.core.filters.terms import Truth
from octopis.core.filters.tree import (
    COST_MAX_US,
    LENGTH_MAX,
    Node,
    conjunction,
    cost_us,
    disjunction,
    names_of,
    negation,
    text_of,
)
from octopis.core.model.notification import plain_attributes
from octopis.errors import InvalidFilter, InvalidNotification


class Filter(msgspec.Struct, frozen=True):
    """A condition on notifications: immutable, hashable, picklable, printable.

    Equal filters have equal trees. `str(f)` is text in the SQL dialect that parses to `f`.
    Join filters with `&`, `|` and `~`.
    """

    tree: Node

    def __post_init__(self) -> None:
        # Here, so that what is printed can always be read again, whatever dialect it came from.
        text = text_of(self.tree)
        if len(text) > LENGTH_MAX:
            raise InvalidFilter(
                f"written out in full, the filter has {len(text)} characters, "
                f"more than {LENGTH_MAX}"
            )
        # Only patterns can cost so much, and most filters have none.
        if " LIKE " in text and (cost := cost_us(self.tree)) > COST_MAX_US:
            raise InvalidFilter(
                f"a long text could keep the filter's LIKE patterns busy for {cost / 1000:.1f} ms, "
                f"more than {COST_MAX_US // 1000}: use fewer or shorter ones that start with %"
            )

    def matches(self, attributes: Attributes) -> bool:
        """Tell whether a notification with these attributes must be delivered.

        An attribute that is None is absent. Raises InvalidNotification for what is no value.
        """
        try:  # as `truth` does, without the cost of another call
            return self.tree.truth(attributes) is True
        except InvalidNotification:
            return self.truth(attributes) is True

    def names(self) -> set[str]:
        """Return the names of the attributes that the filter asks for."""
        return names_of(self.tree)

    def truth(self, attributes: Attributes) -> Truth:
        """Return TRUE, FALSE or UNKNOWN (None); only TRUE matches."""
        try:
            return self.tree.truth(attributes)
        except InvalidNotification:  # it met a value of numpy, of an enumeration, or none
            return self.tree.truth(plain_attributes(attributes))

    def __and__(self, other: "Filter") -> "Filter":
        if not isinstance(other, Filter):
            return NotImplemented
        return Filter(conjunction((self.tree, other.tree)))

    def __or__(self, other: "Filter") -> "Filter":
        if not isinstance(other, Filter):
            return NotImplemented
        return Filter(disjunction((self.tree, other.tree)))

    def __invert__(self) -> "Filter":
        return Filter(negation(self.tree))

    def __bool__(self) -> NoReturn:
        # `a and b` and `1 < attr("x") < 5` would silently drop a condition.
        raise InvalidFilter("join conditions with & | ~, not with and, or, not or a chain")

    def __str__(self) -> str:
        return text_of(self.tree)
