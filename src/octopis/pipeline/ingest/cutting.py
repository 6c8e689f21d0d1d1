"""Lines of text cut into cells, a whole batch at a time."""

import csv
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from octopis.pipeline.ingest.judging import FAULT, HEADER, TEXT, WHERE, Batches
from octopis.pipeline.ingest.mapping import OURS
from octopis.pipeline.ingest.rules import Rules

CORRUPT = "_corrupt"
OPEN_QUOTE = "a quote does not end in the line, and a row is one line"
CELLS, STEM = (OURS + name for name in ("cells", "stem"))


def cut_lines(batches: Batches, rules: Rules, places: Mapping[str, int], width: int) -> Batches:
    """Yield a column of texts for each rule, and FAULT where a line is none of the table's rows.

    It is the header, has too few or many cells, or a cell that goes on in the next line.
    """
    begun: set[int] = set()
    for batch in batches:
        text = batch.column(TEXT)
        cells, fits = _cut(text, places, width)
        is_quoted = pc.match_substring(text, '"')
        if pc.any(is_quoted).as_py():
            inside, fits_quoted = _cut_quoted(text.filter(is_quoted), places, width)
            fits = pc.replace_with_mask(fits, is_quoted, fits_quoted)
            for name in places:
                cells[name] = pc.replace_with_mask(cells[name], is_quoted, inside[name])
        trimmed = {name: _filled(pc.ascii_trim(each, " ")) for name, each in cells.items()}
        wrong = _or_empty(text, f"the line does not have {width} fields")
        fault = pc.if_else(fits, None, wrong)
        if pc.any(is_quoted).as_py():
            fault = pc.if_else(_is_open(text), OPEN_QUOTE, fault)
        fault = pc.if_else(_is_header(batch, begun), HEADER, fault)
        yield _cells(batch, rules, trimmed, fault)


def _is_open(text: pa.Array) -> pa.Array:
    """Tell which lines have a quote that does not end in them: part of a row of several lines."""
    return pc.equal(pc.bit_wise_and(pc.count_substring(text, '"'), 1), 1)


def _is_header(batch: pa.RecordBatch, begun: set[int]) -> pa.Array:
    """Tell which lines are the first of their files; `begun` are the files whose first was seen.

    One task has the beginning of a file, and rows come to it in the order of the file.
    """
    file, block, _ = (batch.column(name).to_numpy() for name in WHERE)
    is_header = np.zeros(len(batch), np.bool_)
    at_start = np.flatnonzero(block == 0)
    numbers, firsts = np.unique(file[at_start], return_index=True)
    for number, first in zip(numbers.tolist(), firsts.tolist(), strict=True):
        if number not in begun:
            begun.add(number)
            is_header[at_start[first]] = True
    return pa.array(is_header)


def _cut_quoted(
    text: pa.Array, places: Mapping[str, int], width: int
) -> tuple[dict[str, pa.Array], pa.Array]:
    """Return the same as `_cut` of lines with quotes, around which commas are no ends of cells."""
    lines = [raw.decode("utf-8", errors="replace") for raw in text.cast(pa.binary()).to_pylist()]
    rows = [_quoted_row(line, width) for line in lines]
    cells = {
        name: pa.array([None if row is None else row[place] for row in rows], pa.string())
        for name, place in places.items()
    }
    return cells, pa.array([row is not None for row in rows], pa.bool_())


def _quoted_row(line: str, width: int) -> list[str] | None:
    """Return the cells of a line, or None where there are not as many as there should be."""
    try:
        row = next(csv.reader([line], strict=True), [])
    except csv.Error:  # a quote that does not end
        return None
    return row if len(row) == width else None


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
