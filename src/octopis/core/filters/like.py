"""LIKE patterns, matched at the speed of C whatever pattern and text are, and never going back.

The `%` of a pattern cut it into parts. The first part stands where the text starts, the last one
where it ends; each of the others stands somewhere between, and its leftmost place is always right:

    'ab%c_d%e'      ab          c_d                    e
                    at 0        anywhere between       at the end

Only parts that stand anywhere have to be searched for. In short texts `str.find` does that. In long
ones it would take a time that depends on how alike pattern and text are, and a `_` inside a part is
beyond it; there numpy compares all places at once, one character of the part after the other. And
of a long text it is found out once which pairs of characters stand in it: a part with another pair
is nowhere in it, and needs no search.
"""

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from itertools import groupby, islice, pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from octopis.core.model.notification import ATTRIBUTES_MAX
from octopis.errors import InvalidFilter

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Codes = npt.NDArray[np.unsignedinteger[Any]]

_LONG = 5_000
"""Characters from which on a text is searched at all places at once."""

_FIND_IS_LINEAR_FROM = 30_000
"""In shorter texts, `str.find` of less than 100 characters may compare them at every place."""

_TRIES = 8
"""Places tried one by one in a short text, before all are tried at once."""

_PAIRS_MAX = 8
"""Pairs of a part that are looked up: more of them would only cost memory."""


class Wildcard(Enum):
    """What stands for other characters in a pattern."""

    ONE = "_"
    MANY = "%"


Element = str | Wildcard


class Part(msgspec.Struct, frozen=True, gc=False):
    """What stands between two `%`: texts at their distances from its start, and its length.

    `pairs` are some of its pairs of characters, as `_pair` numbers them.
    """

    pieces: tuple[tuple[int, str], ...]
    length: int
    pairs: tuple[int, ...] = ()

    def stands_at(self, place: int, text: str) -> bool:
        """Tell whether the part stands at `place`; that it fits there is the caller's care."""
        for distance, piece in self.pieces:  # noqa: SIM110 - all() costs more than the work
            if not text.startswith(piece, place + distance):
                return False
        return True

    def characters(self) -> list[tuple[int, int]]:
        """Return the characters, as numbers, with their distances from the start."""
        return [
            (at, ord(each)) for first, piece in self.pieces for at, each in enumerate(piece, first)
        ]


class LikePattern(msgspec.Struct, frozen=True):
    """A pattern as runs of literal characters and wildcards, in one normal form.

    Wildcards that stand together are written with every `_` first and at most one `%`, so that
    patterns which match the same texts through their wildcards are equal. `parts` follow from
    `elements`.
    """

    elements: tuple[Element, ...]
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "parts", tuple(_parts(self.elements)))

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

    @property
    def cost_us(self) -> int:
        """About how many microseconds the longest text may take, if it is made to take long."""
        searched = self.parts[1:-1]
        sizes = [len(part.pieces[0][1]) for part in searched if len(part.pieces) == 1]
        together = sum(15 + 6 * len(part.characters()) for part in searched if len(part.pieces) > 1)
        if len(searched) == len(sizes) == 1:
            return min(15 + 6 * sizes[0], 300)
        # Every find goes on where the one before has ended: together they read the text once.
        return together + max([250, *(9 * size for size in sizes if size < 100)] if sizes else [0])

    def matches(self, text: str) -> bool:
        """Tell whether the whole of `text` matches."""
        first = self.parts[0]
        if not first.stands_at(0, text):
            return False
        if len(self.parts) == 1:
            return len(text) == first.length
        last = self.parts[-1]
        start, end = first.length, len(text) - last.length
        if start > end or not last.stands_at(end, text):
            return False
        alone = len(self.parts) == 3
        if end - start >= _LONG and not self._may_be_in(_pairs_in(text)):
            return False
        for part in self.parts[1:-1]:
            place = _place_of(part, text, start, end, alone=alone)
            if place < 0:
                return False
            start = place + part.length
        return True

    def _may_be_in(self, there: bytes) -> bool:
        """Tell whether a text with these pairs of characters has all that are searched for."""
        for part in self.parts[1:-1]:
            for pair in part.pairs:
                if not there[pair]:
                    return False
        return True

    def includes(self, other: "LikePattern") -> bool:
        """Tell whether every text that `other` matches is surely matched by this pattern too.

        Bit i of `states` says that the first i places of this pattern are used up, whatever text
        `other` stands for. A `_` of `other` may be a character that this pattern knows nothing
        of, and a `%` may be nothing or anything: both get past only where this one does not care.
        """
        accepts, any_character, loops, places = _automaton(self.elements)
        states = 1
        for element in other.elements:
            if element is Wildcard.MANY:
                states &= loops
            else:
                for character in (None,) if element is Wildcard.ONE else element:
                    steps = states & (accepts.get(character, 0) | any_character)
                    states = steps << 1 | states & loops
            if not states:
                return False
        return bool(states >> places & 1)


def _automaton(elements: tuple[Element, ...]) -> tuple[dict[str | None, int], int, int, int]:
    """Return which places take which character, which take any, and at which any may be left out.

    `_%` is any character, with anything before and after it: so both its places are of the last
    kind.
    """
    accepts: dict[str | None, int] = {}
    any_character = loops = place = run = 0
    for element in elements:
        if element is Wildcard.ONE:
            any_character |= 1 << place
            place, run = place + 1, run + 1
        elif element is Wildcard.MANY:
            loops |= (1 << run + 1) - 1 << place - run
        else:
            for character in element:
                accepts[character] = accepts.get(character, 0) | 1 << place
                place += 1
            run = 0
    return accepts, any_character, loops, place


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


def _parts(elements: tuple[Element, ...]) -> Iterator[Part]:
    """Yield what stands before, between and after the `%`."""
    pieces: list[tuple[int, str]] = []
    length = 0
    for element in elements:
        if element is Wildcard.MANY:
            yield Part(tuple(pieces), length, _pairs_of(pieces))
            pieces, length = [], 0
        elif element is Wildcard.ONE:
            length += 1
        else:
            pieces.append((length, element))
            length += len(element)
    yield Part(tuple(pieces), length, _pairs_of(pieces))


def _pairs_of(pieces: list[tuple[int, str]]) -> tuple[int, ...]:
    found = (_pair(*both) for _, piece in pieces for both in pairwise(piece))
    return tuple(dict.fromkeys(islice(found, _PAIRS_MAX)))


def _pair(first: str, second: str) -> int:
    """Return a number below 65,536 for two characters; outside ASCII and Latin, others share it."""
    return (ord(first) & 0xFF) << 8 | ord(second) & 0xFF


def _place_of(part: Part, text: str, start: int, end: int, *, alone: bool) -> int:
    """Return the leftmost place of `part` from `start` on, ending at `end` at the latest, or -1.

    `alone` says that the pattern has no other part to search for: where it has, `str.find` reads
    the text once for all of them, and `_first_of_all_places` would for each.
    """
    if part.length > end - start:  # `after` may be below 0, where find counts from the text's end
        return -1
    piece, has_gaps = part.pieces[0][1], len(part.pieces) > 1
    after = end - part.length + len(piece)  # where the first piece ends at the latest
    if end - start >= _LONG and (has_gaps or (alone and _may_be_slow(len(piece), end - start))):
        return _first_of_all_places(part, text, start, end)
    if not has_gaps:
        return text.find(piece, start, after)
    place = start - 1
    for _ in range(_TRIES):
        place = text.find(piece, place + 1, after)
        if place < 0 or part.stands_at(place, text):
            return place
    return _first_of_all_places(part, text, place + 1, end)


def _may_be_slow(size: int, length: int) -> bool:
    """Tell whether `str.find` of so many characters may take longer than numpy."""
    return 1 < size < (100 if length < _FIND_IS_LINEAR_FROM else 50)


def _first_of_all_places(part: Part, text: str, start: int, end: int) -> int:
    """Return what `_place_of` does, by comparing each character of the part at all places."""
    codes = _codes(text)
    count = end - part.length + 1 - start
    if count <= 0:  # the places tried before were the last ones
        return -1
    (first, code), *others = part.characters()
    found = codes[start + first : start + first + count] == code
    for number, (distance, code) in enumerate(others):
        if number % 4 == 0 and not found.any():
            return -1
        found &= codes[start + distance : start + distance + count] == code
    place = int(found.argmax())
    return start + place if found[place] else -1


@lru_cache(maxsize=ATTRIBUTES_MAX)
def _pairs_in(text: str) -> bytes:
    """Return for each number of a pair whether the text has such a pair."""
    import numpy as np  # noqa: PLC0415 - as below

    codes = _codes(text).astype(np.uint8).astype(np.uint16)
    there = np.zeros(2**16, np.bool_)
    there[codes[:-1] << 8 | codes[1:]] = True
    return there.tobytes()


@lru_cache(maxsize=ATTRIBUTES_MAX)  # the terms of a filter ask for the same texts again
def _codes(text: str) -> "Codes":
    """Return the characters as numbers."""
    import numpy as np  # noqa: PLC0415 - whoever only makes filters does not wait for it

    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))
