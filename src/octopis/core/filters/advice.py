"""Warnings about filters that are right, and yet seldom what was meant.

Other languages read the same text in another way: double quotes as text, CURRENT_TIMESTAMP as the
time, my-prop as a name.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from octopis.core.filters.covers import covers
from octopis.core.filters.dialects import parse_filter
from octopis.core.filters.filter import Filter
from octopis.core.filters.tree import NEVER

if TYPE_CHECKING:
    from lark import Token

_CLOCKS = frozenset(
    ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP", "SYSDATE")
)
_NAMES = ("NAME", "QUOTED_NAME")


def warnings_for(text: str, dialect: str = "sql") -> list[str]:
    """Return what may surprise about a filter, each in a sentence, or raise InvalidFilter."""
    filter_ = parse_filter(text, dialect)
    found = []
    if dialect == "sql":
        from octopis.core.filters.sql import tokens_of  # noqa: PLC0415 - loads Lark

        tokens = tokens_of(text)
        found = [*_quoted_values(tokens), *_clocks(tokens), *_names_with_dashes(tokens)]
    if covers(Filter(NEVER), filter_):
        found.append("the filter can never be TRUE: it matches nothing")
    return list(dict.fromkeys(found))


def _quoted_values(tokens: Sequence["Token"]) -> Iterator[str]:
    for left, sign, right in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if sign.type != "COMPARATOR" or left.type not in _NAMES or right.type not in _NAMES:
            continue
        quoted = right if right.type == "QUOTED_NAME" else left
        if quoted.type == "QUOTED_NAME":
            text = quoted[1:-1].replace('""', '"').replace("'", "''")
            yield (
                f"{left} {sign} {right} compares two attributes: "
                f"a text stands in single quotes, '{text}'"
            )


def _clocks(tokens: Sequence["Token"]) -> Iterator[str]:
    for token in tokens:
        if token.type == "NAME" and token.upper() in _CLOCKS:
            yield f"{token} is read as an attribute of that name: filters have no clock"


def _names_with_dashes(tokens: Sequence["Token"]) -> Iterator[str]:
    """Yield a warning for each `my-prop`, which other languages allow as a name."""
    names: list[Token] = []
    dash: Token | None = None
    for token in tokens:
        if names and _is_dash(token) and token.start_pos == names[-1].end_pos:
            dash = token
            continue
        follows = dash is not None and token.start_pos == dash.end_pos
        dash = None
        if token.type == "NAME" and follows:
            names.append(token)
            continue
        yield from _read_apart(names)
        names = [token] if token.type == "NAME" else []
    yield from _read_apart(names)


def _is_dash(sign: "Token") -> bool:
    return str(sign) == "-"


def _read_apart(names: list["Token"]) -> Iterator[str]:
    if len(names) > 1:
        whole = "-".join(names)
        yield (
            f"{whole} is read as {' minus '.join(names)}: "
            f'for the attribute of that name write "{whole}"'
        )
