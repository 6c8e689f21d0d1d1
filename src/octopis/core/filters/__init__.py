"""The subscription language: parse, normal form, evaluate, covers, explain.

The language is described on one page in docs/filter-language.md.
"""

from octopis.core.filters.advice import warnings_for
from octopis.core.filters.covers import covers
from octopis.core.filters.dialects import DIALECTS, parse_filter, print_filter
from octopis.core.filters.explain import FilterExplanation, explain
from octopis.core.filters.filter import Filter
from octopis.core.filters.python import attr
from octopis.core.filters.quick import quick

__all__ = [
    "DIALECTS",
    "Filter",
    "FilterExplanation",
    "attr",
    "covers",
    "explain",
    "parse_filter",
    "print_filter",
    "quick",
    "warnings_for",
]
