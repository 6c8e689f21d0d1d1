"""LIKE patterns, matched in time linear in the text and without regular expressions."""

from enum import Enum
from itertools import groupby

import msgspec

from octopis.errors import InvalidFilter


class Wildcard(Enum):
    """What stands for other characters in a pattern."""

    ONE = "_"
    MANY = "%"


Element = str | Wildcard


class LikePattern(msgspec.Struct, frozen=True):
    """A pattern as runs of literal characters and wildcards, in one normal form.

    Wildcards that stand together are written with every `_` first and at most one `%`, so that
    patterns which match the same texts through their wildcards are equal.
    """

    elements: tuple[Element, ...]

    @property
    def literal(self) -> str | None:
        """The only text that matches, where the pattern has no wildcard."""
        if not self.elements:
            return ""
        first = self.elements[0]
        return first if len(self.elements) == 1 and isinstance(first, str) else None

    @property
    def prefix(self) -> str:
        """What every matching text starts with."""
        first = self.elements[0] if self.elements else ""
        return first if isinstance(first, str) else ""

    def is_prefix_only(self) -> bool:
        """Tell whether the pattern asks for its prefix and nothing else."""
        rest = self.elements[1:] if self.prefix else self.elements
        return rest == (Wildcard.MANY,)

    def matches(self, text: str) -> bool:
        """Tell whether the whole of `text` matches."""
        if Wildcard.ONE in self.elements:
            return _matches_automaton(self.elements, text)
        return _matches_literals(self.elements, text)


def pattern_of(elements: list[Element]) -> LikePattern:
    """Return the pattern of `elements` in normal form."""
    normal: list[Element] = []
    said = [element for element in elements if element != ""]
    for is_text, run in groupby(said, lambda element: isinstance(element, str)):
        items = list(run)
        if is_text:
            normal.append("".join(items))  # type: ignore[arg-type]  # texts, by the grouping
        else:
            normal.extend(item for item in items if item is Wildcard.ONE)
            normal.extend([Wildcard.MANY] if Wildcard.MANY in items else [])
    return LikePattern(tuple(normal))


def parse_like(pattern: str, escape: str | None = None) -> LikePattern:
    """Return the pattern written as in SQL: `%` many, `_` one, `escape` takes their meaning away.

    Raises InvalidFilter for an escape of other than one character, or one that escapes nothing.
    """
    if escape is not None and len(escape) != 1:
        raise InvalidFilter(f"ESCAPE takes one character, not {escape!r}")
    elements: list[Element] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None or following not in ("%", "_", escape):
                raise InvalidFilter(
                    f"in the pattern {pattern!r} the escape {escape!r} must stand before "
                    f"'%', '_' or itself"
                )
            elements.append(following)
        elif character in ("%", "_"):
            elements.append(Wildcard(character))
        else:
            elements.append(character)
    return pattern_of(elements)


def _matches_literals(elements: tuple[Element, ...], text: str) -> bool:
    """Match a pattern of literals and `%`: take each literal at its leftmost place."""
    literals = [element for element in elements if isinstance(element, str)]
    if not literals:
        return bool(elements) or not text
    start, end = 0, len(text)
    if isinstance(elements[0], str):
        if not text.startswith(literals[0]):
            return False
        start = len(literals.pop(0))
    if literals and isinstance(elements[-1], str):
        if not text.endswith(literals[-1]):
            return False
        end -= len(literals.pop())
    elif not literals and elements[-1] is not Wildcard.MANY:
        return start == end
    for literal in literals:
        found = text.find(literal, start, end)
        if found < 0:
            return False
        start = found + len(literal)
    return start <= end


def _matches_automaton(elements: tuple[Element, ...], text: str) -> bool:
    """Match any pattern: bit i of `states` says that the first i places may have been used.

    One step per character of the text, each a few operations on one integer, however the
    wildcards stand: no pattern makes it go back.
    """
    accepts: dict[str, int] = {}
    any_character = loops = place = 0
    for element in elements:
        if element is Wildcard.MANY:
            loops |= 1 << place
        elif element is Wildcard.ONE:
            any_character |= 1 << place
            place += 1
        else:
            for character in element:
                accepts[character] = accepts.get(character, 0) | 1 << place
                place += 1
    states = 1
    for character in text:
        steps = states & (accepts.get(character, 0) | any_character)
        states = steps << 1 | states & loops
        if not states:
            return False
    return bool(states >> place & 1)
