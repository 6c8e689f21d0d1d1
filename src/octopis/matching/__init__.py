"""Which subscriptions match: the obvious index, and the fast one with the same interface."""

from octopis.matching.bitset import BitsetIndex
from octopis.matching.interface import MatchingIndex
from octopis.matching.linear import LinearIndex

__all__ = ["BitsetIndex", "LinearIndex", "MatchingIndex"]
