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

_TEXT_KEPT = 500


def judged_schema(rules: Rules) -> pa.Schema:
    """Return the columns of judged rows. Sound ones have no REASON, the others no key."""
    values = [(rule.name, rule.arrow_type) for rule in rules.read]
    where = zip(WHERE, PLACES.values(), strict=True)
    return pa.schema([*where, (TEXT, pa.string()), (REASON, pa.string()), *values])


def judge(batches: Batches, rules: Rules) -> Batches:
    """Yield judged rows, from rows of WHERE, TEXT, a column for each rule, and FAULT."""
    schema = judged_schema(rules)
    for batch in batches:
        yield _judged(batch, rules, schema)


def _judged(batch: pa.RecordBatch, rules: Rules, schema: pa.Schema) -> pa.RecordBatch:
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
    kept = pc.utf8_slice_codeunits(text, 0, _TEXT_KEPT)  # of sound rows too: they may repeat others
    where = [batch.column(name) for name in WHERE]
    return pa.RecordBatch.from_arrays([*where, kept, reason, *values.values()], schema=schema)


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
