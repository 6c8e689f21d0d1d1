"""Rows of text become typed quotes, or get the reason why not: whole batches at a time, in Arrow.

As expressions of Spark's the same checks take Java longer to compile than to run.
"""

import re
from collections.abc import Iterator
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from octopis.pipeline.schemas import PRICES, RAW_COLUMNS

Batches = Iterator[pa.RecordBatch]
Mask = npt.NDArray[np.bool_]

WHERE = ("file", "block", "place")
"""Where a row stands: the number of its file by name, the start of its block, its place there."""

JUDGED = pa.schema(
    [
        ("file", pa.int32()),
        ("block", pa.int64()),
        ("place", pa.int64()),
        ("text", pa.string()),
        ("reason", pa.string()),
        ("symbol", pa.string()),
        ("date", pa.string()),
        *((name, pa.float64()) for name in PRICES),
        ("volume", pa.int64()),
    ]
)
"""Sound rows have no `reason`, the others no symbol and no date."""

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_SHORT_VOLUME = r"^\d{1,18}$"
_VOLUME_MAX = 2**63
_NINE_PLACES = Decimal("1e-9")
_EXACT = Context(prec=38, rounding=ROUND_HALF_UP)
_SYMBOL_MAX = 255
_TEXT_KEPT = 500
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


def judge(batches: Batches) -> Batches:
    """Yield rows as JUDGED has them, from rows of WHERE, `text`, RAW_COLUMNS and `fault`."""
    for batch in batches:
        yield _judged(batch)


def _judged(batch: pa.RecordBatch) -> pa.RecordBatch:
    text, is_text = _readable(batch.column("text"))
    raw = {name: batch.column(name) for name in RAW_COLUMNS}
    if not is_text.all():  # nobody can look into these
        raw = {name: pc.if_else(pa.array(is_text), cells, None) for name, cells in raw.items()}
    days = _dates(raw["date"])
    prices = {name: _numbers(raw[name]) for name in PRICES}
    volume, is_whole = _volumes(raw["volume"])
    checks = [
        (~is_text, "the line is not UTF-8"),
        (_missing(raw["symbol"]), "symbol is missing"),
        (_missing(raw["date"]), "date is missing"),
        (_true(pc.greater(pc.utf8_length(raw["symbol"]), _SYMBOL_MAX)), "symbol is too long"),
        (_true(pc.is_null(days)), "date does not parse"),
    ]
    for name, values in {**prices, "volume": volume}.items():
        checks += [
            (_missing(raw[name]), f"{name} is missing"),
            (~_true(pc.is_finite(values)), f"{name} is not a number"),
            (_true(pc.less(values, 0)), f"{name} is negative"),
        ]
    checks += [
        (~is_whole, "volume is not a whole number"),
        (_true(pc.less(prices["high"], prices["low"])), "high is below low"),
    ]
    reason = pc.coalesce(batch.column("fault"), _first_of(checks))
    sound = pc.is_null(reason)
    columns = [
        *(batch.column(name) for name in WHERE),
        pc.utf8_slice_codeunits(text, 0, _TEXT_KEPT),  # of sound rows too: they may repeat others
        reason,
        pc.if_else(sound, raw["symbol"], None),
        pc.if_else(sound, days, None),
        *prices.values(),
        volume,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=JUDGED)


def _first_of(checks: list[tuple[Mask, str]]) -> pa.Array:
    """Return for each row what is said of it first, null where nothing is."""
    found = np.zeros(len(checks[0][0]), np.int8)
    for number in range(len(checks), 0, -1):
        found[checks[number - 1][0]] = number
    return pa.array([None, *(reason for _, reason in checks)], pa.string()).take(pa.array(found))


def _true(values: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(values, fill_value=False).to_numpy(zero_copy_only=False)
    return mask


def _missing(cells: pa.Array) -> Mask:
    return ~_true(pc.not_equal(cells, ""))


def _readable(text: pa.Array) -> tuple[pa.Array, Mask]:
    """Return texts that can be read, and which of them could be without replacing bytes."""
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        raw = text.cast(pa.binary()).to_pylist()
        replaced = [each.decode("utf-8", errors="replace") for each in raw]
        same = [new.encode() == old for new, old in zip(replaced, raw, strict=True)]
        return pa.array(replaced, pa.string()), np.array(same, np.bool_)
    return text, np.ones(len(text), np.bool_)


def _numbers(cells: pa.Array) -> pa.Array:
    """Return numbers, null where there is none; one that is too large is infinite."""
    return pc.if_else(pc.match_substring_regex(cells, _NUMBER), cells, None).cast(pa.float64())


def _volumes(cells: pa.Array) -> tuple[pa.Array, Mask]:
    """Return numbers without what follows the point, and where nothing but zeros does."""
    is_short = pc.match_substring_regex(cells, _SHORT_VOLUME)
    volumes = pc.if_else(is_short, cells, None).cast(pa.int64())
    is_whole = np.ones(len(cells), np.bool_)
    if volumes.null_count == cells.null_count:
        return volumes, is_whole
    found = volumes.to_pylist()
    others = pc.and_kleene(pc.invert(is_short), pc.match_substring_regex(cells, _NUMBER))
    for place in np.flatnonzero(_true(others)):
        found[place], is_whole[place] = _exact_volume(cells[place].as_py())
    return pa.array(found, pa.int64()), is_whole


def _exact_volume(text: str) -> tuple[int | None, bool]:
    try:
        exact = Decimal(text).quantize(_NINE_PLACES, context=_EXACT)
    except InvalidOperation:  # too large
        return None, True
    volume = int(exact)
    return (volume, exact == volume) if -_VOLUME_MAX <= volume < _VOLUME_MAX else (None, True)


def _dates(cells: pa.Array) -> pa.Array:
    """Return dates as yyyy-MM-dd, null where there is none; each spelling is looked at once."""
    spellings = cells.dictionary_encode()
    found = [parse_date(text) for text in spellings.dictionary.to_pylist()]
    return pa.array(found, pa.string()).take(spellings.indices)


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
