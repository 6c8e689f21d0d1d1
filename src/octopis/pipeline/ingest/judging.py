"""Rows of cells become typed rows, or get the reason why not: whole batches at a time, in Arrow.

As expressions of Spark's the same checks take Java longer to compile than to run.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from octopis.pipeline.ingest.cells import Check, Mask, judged_column
from octopis.pipeline.ingest.mapping import OURS
from octopis.pipeline.ingest.rules import Rules

Batches = Iterator[pa.RecordBatch]

PLACES = {"file": pa.int32(), "block": pa.int64(), "place": pa.int64()}
"""Where a row stands: the number of its file by name, the start of its block, its place there."""

WHERE = tuple(OURS + name for name in PLACES)
TEXT, REASON, FAULT = (OURS + name for name in ("text", "reason", "fault"))

HEADER = "the line is the header"
"""The reason by which the first line of a file of CSV is told from its rows: it is none."""

TEXT_KEPT = 500
"""Characters of a row that the quarantine shows."""


def judged_schema(rules: Rules) -> pa.Schema:
    """Return the columns of judged rows. Sound ones have no REASON, the others no key."""
    values = [(rule.name, rule.arrow_type) for rule in rules.read]
    where = zip(WHERE, PLACES.values(), strict=True)
    return pa.schema([*where, (TEXT, pa.string()), (REASON, pa.string()), *values])


def judge(batches: Batches, rules: Rules, *, keeps_text: bool = False) -> Batches:
    """Yield judged rows, from rows of WHERE, TEXT, a column for each rule, and FAULT.

    Sound rows have no TEXT, unless it is kept: it would be most of what Spark has to sort. The few
    that are set aside later are read again.
    """
    schema = judged_schema(rules)
    for batch in batches:
        where = [batch.column(name) for name in WHERE]
        text, reason, values = _judged(batch, rules)
        kept = text if keeps_text else pc.if_else(reason.is_valid(), text, None)
        yield pa.RecordBatch.from_arrays([*where, kept, reason, *values], schema=schema)


def _judged(batch: pa.RecordBatch, rules: Rules) -> tuple[pa.Array, pa.Array, list[pa.Array]]:
    """Return texts, reasons and values of rows."""
    text, is_text = _readable(batch.column(TEXT))
    checks: list[Check] = [(~is_text, "the line is not UTF-8")]
    values = {}
    for rule in rules.read:
        cells = batch.column(rule.name)
        if not is_text.all():  # nobody can look into these
            cells = pc.if_else(pa.array(is_text), cells, None)
        values[rule.name], wrong = judged_column(rule, cells)
        checks += wrong
    reason = pc.coalesce(batch.column(FAULT), first_of(checks))
    sound = pc.is_null(reason)
    for name in rules.key:
        values[name] = pc.if_else(sound, values[name], None)
    if (pc.max(pc.binary_length(text)).as_py() or 0) > TEXT_KEPT:
        text = pc.utf8_slice_codeunits(text, 0, TEXT_KEPT)
    return text, reason, list(values.values())


def first_of(checks: list[Check]) -> pa.Array:
    """Return for each row what is said of it first, null where nothing is."""
    found = np.zeros(len(checks[0][0]), np.int16)
    for number in range(len(checks), 0, -1):
        found[checks[number - 1][0]] = number
    return pa.array([None, *(reason for _, reason in checks)], pa.string()).take(pa.array(found))


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
