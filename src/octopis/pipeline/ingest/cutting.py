"""Lines of text cut into cells, a whole batch at a time."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from octopis.pipeline.ingest.judging import FAULT, TEXT, WHERE, Batches
from octopis.pipeline.ingest.mapping import OURS
from octopis.pipeline.ingest.rules import Rules

CORRUPT = "_corrupt"
CELLS, STEM = (OURS + name for name in ("cells", "stem"))


def cut_lines(batches: Batches, rules: Rules, places: Mapping[str, int], width: int) -> Batches:
    """Yield a column of texts for each rule, and FAULT where a line has too few or many cells.

    Lines with quotes come with their CELLS, which are null for all others.
    """
    for batch in batches:
        text, quoted = batch.column(TEXT), batch.column(CELLS)
        cells, fits = _cut(text, places, width)
        if quoted.null_count < len(quoted):
            is_quoted = quoted.is_valid()
            fits = pc.if_else(is_quoted, quoted.field(CORRUPT).is_null(), fits)
            for name, place in places.items():
                cells[name] = pc.if_else(is_quoted, quoted.field(place), cells[name])
        trimmed = {name: _filled(pc.ascii_trim(each, " ")) for name, each in cells.items()}
        wrong = f"the line does not have {width} fields"
        yield _cells(batch, rules, trimmed, pc.if_else(fits, None, _or_empty(text, wrong)))


def _filled(cells: pa.Array) -> pa.Array:
    """Return cells, null where they are empty."""
    is_empty = pc.equal(cells, "")
    return pc.if_else(is_empty, None, cells) if pc.any(is_empty).as_py() else cells


def _cut(
    text: pa.Array, places: Mapping[str, int], width: int
) -> tuple[dict[str, pa.Array], pa.Array]:
    """Return cells of a row by attribute, and which lines have as many cells as they should."""
    lists = pc.split_pattern(text, ",")
    begins = lists.offsets.to_numpy()
    fits = pa.array(np.diff(begins) == width)
    cells = {
        name: lists.values.take(pc.if_else(fits, pa.array(begins[:-1] + place), None))
        for name, place in places.items()
    }
    return cells, fits


def open_objects(batches: Batches, rules: Rules, paths: Mapping[str, tuple[str, ...]]) -> Batches:
    """Yield the same from rows whose CELLS are JSON objects, of which every value is text."""
    for batch in batches:
        text, cells = batch.column(TEXT), batch.column(CELLS)
        values = {name: _inside(cells, path) for name, path in paths.items()}
        is_wrong = pc.or_(cells.is_null(), _inside(cells, (CORRUPT,)).is_valid())
        fault = pc.if_else(is_wrong, _or_empty(text, "the line is not such a JSON object"), None)
        yield _cells(batch, rules, values, fault)


def _inside(cells: pa.StructArray, path: tuple[str, ...]) -> pa.Array:
    for name in path:
        cells = pc.struct_field(cells, [cells.type.get_field_index(name)])
    return cells


def _or_empty(text: pa.Array, wrong: str) -> pa.Array:
    is_empty = pc.equal(pc.ascii_trim(text, " "), "")
    return pc.if_else(is_empty, "the line is empty", wrong)


def _cells(
    batch: pa.RecordBatch, rules: Rules, values: Mapping[str, pa.Array], fault: pa.Array
) -> pa.RecordBatch:
    """Return the columns that rows are judged by; one that a file lacks may be its name."""
    nothing = pa.nulls(len(batch), pa.string())
    columns = {name: batch.column(name) for name in (*WHERE, TEXT)}
    for rule in rules.read:
        instead = batch.column(STEM) if rule.said.from_file else nothing
        columns[rule.name] = values.get(rule.name, instead)
    return pa.RecordBatch.from_pydict({**columns, FAULT: fault})
