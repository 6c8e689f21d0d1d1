"""The dialects by name: reading a filter in one of them, and writing it.

Lark and the grammars are loaded when the first text is read: whoever builds filters in Python, or
passes on those of others, does not wait for them.
"""

from functools import lru_cache

from octopis.core.filters.filter import Filter
from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidConfiguration, InvalidFilter

DIALECTS = ("sql", "padres")


def parse_filter(text: str, dialect: str = "sql") -> Filter:
    """Return the filter that `text` says in `dialect`, or raise InvalidFilter."""
    if not isinstance(text, str):
        raise InvalidFilter(f"a filter is text, not {type(text).__name__}")
    parse = _parsed_short if len(text) <= _SHORT else _parsed_long
    return parse(text, checked_dialect(dialect))


def _parsed(text: str, dialect: str) -> Filter:
    if dialect == "padres":
        from octopis.core.filters.padres import parse_padres  # noqa: PLC0415 - loads Lark

        return parse_padres(text)
    from octopis.core.filters.sql import parse_sql  # noqa: PLC0415 - loads Lark

    return parse_sql(text)


_SHOWN = 40

# A text seen before costs nothing. Long ones are few and large: they must not fill the memory.
_SHORT = 256
_parsed_short = lru_cache(maxsize=16_384)(_parsed)
_parsed_long = lru_cache(maxsize=512)(_parsed)


def print_filter(filter_: Filter, dialect: str = "sql") -> str:
    """Return `filter_` as text, or raise InvalidFilter where the dialect cannot say it."""
    if checked_dialect(dialect) == "padres":
        from octopis.core.filters.padres import print_padres  # noqa: PLC0415 - loads Lark

        return print_padres(filter_)
    return str(filter_)


def checked_dialect(dialect: str) -> str:
    """Return the name of a dialect, or raise InvalidConfiguration."""
    if dialect not in DIALECTS:
        shown = dialect[:_SHOWN] if isinstance(dialect, str) else dialect  # it may be very long
        raise InvalidConfiguration(
            f"there is no filter dialect {shown!r}, only {' and '.join(DIALECTS)}"
            f"{did_you_mean(shown, DIALECTS) if isinstance(shown, str) else ''}"
        )
    return dialect
