"""Cells become values of an attribute's kind, or are told apart as wrong: whole columns, in Arrow.

A cell is text where files hold text, and a number, a boolean or a moment where a table has types.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from octopis.pipeline.ingest.mapping import Kind
from octopis.pipeline.ingest.rules import Rule

Mask = npt.NDArray[np.bool_]
Check = tuple[Mask, str]

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_SHORT_DIGITS = 18
_WHOLE_MAX = 2**63
_NINE_PLACES = Decimal("1e-9")
_EXACT = Context(prec=38, rounding=ROUND_HALF_UP)
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DATES = [
    re.compile(form, re.ASCII)
    for form in (
        r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)",
        r"(?P<day>\d+)-(?P<name>[A-Za-z]{3})-(?P<year>\d\d|\d{4})",
        r"(?P<year>\d{4})/(?P<month>\d\d)/(?P<day>\d\d)",
        r"(?P<month>\d+)/(?P<day>\d+)/(?P<year>\d{4})",
        r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)",
    )
]
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9})\d*)?\s?"
    r"(Z|z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_SECOND_NS = 1_000_000_000
_NS_MAX = 2**63
MICROS_MAX = _NS_MAX // 1000
"""Nanoseconds since 1970 have 64 bits: moments are from 1677 to 2262."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def judged_column(rule: Rule, cells: pa.Array) -> tuple[pa.Array, list[Check]]:
    """Return the values of an attribute, null where there is none, and what is wrong with which."""
    is_text = pa.types.is_string(cells.type)
    filled = ~true_of(pc.equal(cells, "")) if is_text else np.ones(len(cells), np.bool_)
    filled &= cells.is_valid().to_numpy(zero_copy_only=False)
    values, wrong = _READERS[rule.kind](rule, cells, filled)
    checks = [(~filled, f"{rule.name} is missing")] if rule.said.required else []
    return values, [*checks, *wrong]


def true_of(values: pa.Array) -> Mask:
    """Return which values are true; nulls are not."""
    mask: Mask = pc.fill_null(values, fill_value=False).to_numpy(zero_copy_only=False)
    return mask


def _texts(rule: Rule, cells: pa.Array, filled: Mask) -> tuple[pa.Array, list[Check]]:
    texts = cells if pa.types.is_string(cells.type) else cells.cast(pa.string())
    is_long = true_of(pc.greater(pc.utf8_length(texts), rule.said.max_length))
    return texts, [(is_long & filled, f"{rule.name} is too long")]


def _numbers(rule: Rule, cells: pa.Array, filled: Mask) -> tuple[pa.Array, list[Check]]:
    if pa.types.is_string(cells.type):
        values = _written_numbers(cells)
    elif _is_numeric(cells.type):
        values = cells.cast(pa.float64(), safe=False)
    else:
        values = pa.nulls(len(cells), pa.float64())
    wrong = filled & ~true_of(pc.is_finite(values))
    return values, [(wrong, f"{rule.name} is not a number"), *_bounds(rule, values)]


def _written_numbers(cells: pa.Array) -> pa.Array:
    """Return numbers, null where there is none; one that is too large is infinite."""
    try:
        return cells.cast(pa.float64())  # words for what is no number become what is not finite
    except pa.ArrowInvalid:
        is_number = pc.match_substring_regex(cells, _NUMBER)
        return pc.if_else(is_number, cells, None).cast(pa.float64())


def _integers(rule: Rule, cells: pa.Array, filled: Mask) -> tuple[pa.Array, list[Check]]:
    is_whole = np.ones(len(cells), np.bool_)
    if pa.types.is_signed_integer(cells.type):
        values = cells.cast(pa.int64())
    elif pa.types.is_string(cells.type) or _is_numeric(cells.type):
        values, is_whole = _wholes(cells if pa.types.is_string(cells.type) else _written(cells))
    else:
        values = pa.nulls(len(cells), pa.int64())
    wrong = filled & ~values.is_valid().to_numpy(zero_copy_only=False)
    return values, [
        (wrong, f"{rule.name} is not a number"),
        *_bounds(rule, values),
        (~is_whole, f"{rule.name} is not a whole number"),
    ]


def _written(cells: pa.Array) -> pa.Array:
    return pa.array([None if each is None else repr(each) for each in cells.to_pylist()])


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _bounds(rule: Rule, values: pa.Array) -> list[Check]:
    least, most = rule.said.min, rule.said.max
    checks = []
    if least is not None:
        below = "is negative" if least == 0 else f"is below {least:g}"
        checks.append((true_of(pc.less(values, least)), f"{rule.name} {below}"))
    if most is not None:
        checks.append((true_of(pc.greater(values, most)), f"{rule.name} is above {most:g}"))
    return checks


def _wholes(cells: pa.Array) -> tuple[pa.Array, Mask]:
    """Return numbers without what follows the point, and where nothing but zeros does."""
    is_short = pc.and_(
        pc.ascii_is_decimal(cells), pc.less_equal(pc.binary_length(cells), _SHORT_DIGITS)
    )
    wholes = pc.if_else(is_short, cells, None).cast(pa.int64())
    is_whole = np.ones(len(cells), np.bool_)
    if wholes.null_count == cells.null_count:
        return wholes, is_whole
    found = wholes.to_pylist()
    others = pc.and_kleene(pc.invert(is_short), pc.match_substring_regex(cells, _NUMBER))
    for place in np.flatnonzero(true_of(others)):
        found[place], is_whole[place] = _exact_whole(cells[place].as_py())
    return pa.array(found, pa.int64()), is_whole


def _exact_whole(text: str) -> tuple[int | None, bool]:
    try:
        exact = Decimal(text).quantize(_NINE_PLACES, context=_EXACT)
    except InvalidOperation:  # too large
        return None, True
    whole = int(exact)
    return (whole, exact == whole) if -_WHOLE_MAX <= whole < _WHOLE_MAX else (None, True)


def _booleans(rule: Rule, cells: pa.Array, filled: Mask) -> tuple[pa.Array, list[Check]]:
    if pa.types.is_boolean(cells.type):
        return cells, []
    words = pc.utf8_lower(cells.cast(pa.string()))
    values = _each_once(words, _TRUTHS.get, pa.bool_())
    wrong = filled & ~values.is_valid().to_numpy(zero_copy_only=False)
    return values, [(wrong, f"{rule.name} is neither true nor false")]


def _dates(rule: Rule, cells: pa.Array, filled: Mask) -> tuple[pa.Array, list[Check]]:
    days = _each_once(cells.cast(pa.string()), parse_date, pa.string())
    wrong = filled & ~days.is_valid().to_numpy(zero_copy_only=False)
    return days, [(wrong, f"{rule.name} does not parse")]


def _times(rule: Rule, cells: pa.Array, filled: Mask) -> tuple[pa.Array, list[Check]]:
    if pa.types.is_timestamp(cells.type):
        micros = cells.cast(pa.timestamp("us")).cast(pa.int64())
        known = pc.and_(pc.greater(micros, -MICROS_MAX), pc.less(micros, MICROS_MAX))
        moments = pc.multiply(pc.if_else(known, micros, None), 1000)
        values = moments if rule.in_ns else iso_times(moments)
    else:
        make: Callable[[str], Any] = parse_time if rule.in_ns else _iso_of
        values = _each_once(cells.cast(pa.string()), make, rule.arrow_type)
    wrong = filled & ~values.is_valid().to_numpy(zero_copy_only=False)
    return values, [(wrong, f"{rule.name} is not a time")]


_READERS = {
    Kind.TEXT: _texts,
    Kind.NUMBER: _numbers,
    Kind.INTEGER: _integers,
    Kind.BOOLEAN: _booleans,
    Kind.DATE: _dates,
    Kind.TIME: _times,
}


def _each_once(cells: pa.Array, make: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    """Return what `make` gives for each cell; of those that are alike one is looked at."""
    spellings = cells.dictionary_encode()
    found = [make(each) for each in spellings.dictionary.to_pylist()]
    return pa.array(found, kind).take(spellings.indices)


@lru_cache(maxsize=100_000)
def parse_date(text: str) -> str | None:
    """Return a date in its usual spellings as yyyy-MM-dd; a time of day is left out."""
    day = text.partition(" ")[0].partition("T")[0]
    for form in _DATES:
        found = form.fullmatch(day)
        if found:
            parts = found.groupdict()
            name = parts.get("name", "").lower()
            if name and name not in _MONTHS:
                return None
            month = _MONTHS.index(name) + 1 if name else int(parts["month"])
            year = int(parts["year"]) + (2000 if len(parts["year"]) == 2 else 0)
            try:
                return date(year, month, int(parts["day"])).isoformat()
            except (ValueError, OverflowError):
                return None
    return None


def parse_time(text: str) -> int | None:
    """Return a moment in ISO 8601 as nanoseconds since 1970; without an offset it is in UTC."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    day, time, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time or '00:00'}{(zone or 'Z').upper()}")
        since = moment - _EPOCH
    except (ValueError, OverflowError):
        return None
    seconds = since.days * 86_400 + since.seconds
    ns = seconds * _SECOND_NS + int((fraction or "0").ljust(9, "0"))
    return ns if -_NS_MAX <= ns < _NS_MAX else None


def iso_time(ns: int) -> str:
    """Return a moment as 2024-05-01T12:00:00.000000Z: texts of one length sort as moments do."""
    seconds, rest = divmod(ns, _SECOND_NS)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest // 1000:06d}Z"


def iso_times(moments: pa.Array) -> pa.Array:
    """Return the same of a column."""
    return _each_once(moments, iso_time, pa.string())


def _iso_of(text: str) -> str | None:
    ns = parse_time(text)
    return None if ns is None else iso_time(ns)
