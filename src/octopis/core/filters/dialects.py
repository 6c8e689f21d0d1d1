"""The dialects by name, and reading a text in one of them."""

from collections.abc import Callable
from functools import lru_cache

from octopis.core.filters.filter import Filter
from octopis.core.filters.padres import parse_padres, print_padres
from octopis.core.filters.sql import parse_sql
from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidConfiguration

_PARSERS: dict[str, Callable[[str], Filter]] = {"sql": parse_sql, "padres": parse_padres}
_PRINTERS: dict[str, Callable[[Filter], str]] = {"sql": str, "padres": print_padres}
DIALECTS = tuple(_PARSERS)


@lru_cache(maxsize=16_384)  # a text seen before costs nothing
def parse_filter(text: str, dialect: str = "sql") -> Filter:
    """Return the filter that `text` says in `dialect`, or raise InvalidFilter."""
    return _PARSERS[_checked(dialect)](text)


def print_filter(filter_: Filter, dialect: str = "sql") -> str:
    """Return `filter_` as text, or raise InvalidFilter where the dialect cannot say it."""
    return _PRINTERS[_checked(dialect)](filter_)


def _checked(dialect: str) -> str:
    if dialect not in _PARSERS:
        raise InvalidConfiguration(
            f"there is no filter dialect {dialect!r}, only {' and '.join(DIALECTS)}"
            f"{did_you_mean(dialect, DIALECTS)}"
        )
    return dialect
