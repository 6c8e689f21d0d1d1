"""Alternatives of filters that are found by an attribute, and evaluated one by one.

Where few ask for an attribute, that is all it takes: `RareLists` holds such subscriptions in lists
that grow and shrink in place. Nothing is ever built anew for them, however many there are, and a
notification without their attributes does not meet them. Once an attribute is asked for more often,
those who ask are handed back, to be indexed in another way.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from octopis.core.filters import Filter
from octopis.core.filters.operands import Attributes
from octopis.core.filters.terms import PresenceTerm, Term, ValueTerm
from octopis.core.filters.tree import Node
from octopis.core.matching.alternatives import Alternative, alternatives, holds, required

_FEW = 8
"""So many may ask for an attribute that is rare."""


@dataclass(frozen=True, slots=True)
class Member:
    """A subscription: its number in the index, its destination's, and its filter."""

    number: int
    destination: int
    filter: Filter


class Listed(NamedTuple):
    """An alternative that is evaluated; `is_shared`: it stands under several attributes."""

    number: int
    destination: int
    nodes: tuple[Node, ...]
    is_shared: bool


def listed(number: int, destination: int, alternative: Alternative, names: list[str]) -> Listed:
    """Return an alternative as it stands in the lists of the attributes `names`."""
    # What is said of other attributes than the one that is there most likely fails at once.
    terms = alternative.terms
    if len(terms) > 1:
        terms = tuple(sorted(terms, key=lambda term: _effort(term, names)))
    return Listed(number, destination, (*terms, *alternative.rest), len(names) > 1)


def _effort(term: Term, names: list[str]) -> int:
    """Return the place of a term among those that are evaluated for whoever has one of `names`."""
    if isinstance(term, ValueTerm | PresenceTerm):
        return int(term.attribute in names)
    return 2


class RareLists:
    """Subscriptions all of whose alternatives require an attribute that few others require."""

    def __init__(self) -> None:
        self._members: dict[int, Member] = {}
        self._names: dict[int, set[str]] = {}
        self._lists: dict[str, list[Listed]] = {}
        self._not_rare: set[str] = set()

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, number: int) -> bool:
        return number in self._members

    def take(self, members: Iterable[Member]) -> list[Member]:
        """Take in what is rare; return the others, and with them what is not rare any more."""
        others: list[Member] = []
        for member in members:
            found = self._rare(member)
            if found is None:
                others.append(member)
                continue
            self._members[member.number] = member
            names = self._names[member.number] = set()
            for name, alternative in found:
                entry = listed(member.number, member.destination, alternative, [name])
                self._lists.setdefault(name, []).append(entry)
                names.add(name)
            for name in sorted(names):
                if len(self._lists.get(name, ())) > _FEW:
                    self._not_rare.add(name)
                    others += self._hand_back(name)
        return others

    def remove(self, number: int) -> None:
        """Take a subscription out, which must be there."""
        del self._members[number]
        for name in self._names.pop(number):
            left = [each for each in self._lists[name] if each.number != number]
            if left:
                self._lists[name] = left
            else:
                del self._lists[name]

    def under(self, attributes: Attributes) -> Iterator[Listed]:
        """Yield what stands under the attributes of a notification."""
        lists = self._lists
        for name in attributes:
            if name in lists:
                yield from lists[name]

    def reached(self, attributes: Attributes, bits: int) -> int:
        """Return `bits` with those of destinations on that have an entry here which matches."""
        for each in self.under(attributes):
            if not bits >> each.destination & 1 and holds(each.nodes, attributes):
                bits |= 1 << each.destination
        return bits

    def matches(self, attributes: Attributes, behind: int | None = None) -> Iterator[int]:
        """Yield the numbers of subscriptions that match; one may come several times.

        Or only those `behind` one destination.
        """
        for each in self.under(attributes):
            if behind in (None, each.destination) and holds(each.nodes, attributes):
                yield each.number

    def _rare(self, member: Member) -> list[tuple[str, Alternative]] | None:
        """Return the alternatives, each with its rarest attribute; None where one has none."""
        found = []
        for alternative in alternatives(member.filter.tree):
            names = required(alternative.terms) - self._not_rare
            if not names:
                return None
            found.append((min(names, key=self._rarity), alternative))
        return found or None

    def _rarity(self, name: str) -> tuple[int, str]:
        return len(self._lists.get(name, ())), name

    def _hand_back(self, name: str) -> list[Member]:
        numbers = dict.fromkeys(each.number for each in self._lists[name])
        gone = [self._members[number] for number in numbers]
        for number in numbers:
            self.remove(number)
        return gone
