"""Which subscriptions match: the obvious index, and the fast one with the same interface."""

from octopis.core.matching.bitset import BitsetIndex
from octopis.core.matching.interface import MatchingIndex
from octopis.core.matching.linear import LinearIndex

__all__ = ["BitsetIndex", "LinearIndex", "MatchingIndex"]
