"""Lines of CSV cut into cells, a whole batch at a time."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from octopis.pipeline.ingest.judging import WHERE, Batches
from octopis.pipeline.schemas import RAW_COLUMNS

CORRUPT = "corrupt"
_NAMES = [*WHERE, "text", *RAW_COLUMNS, "fault"]


def cut_lines(batches: Batches, places: Mapping[str, int], width: int) -> Batches:
    """Yield rows of RAW_COLUMNS as text, and `fault` where a line has too few or too many cells.

    Lines with quotes come with their `cells`, which are null for all others.
    """
    for batch in batches:
        text, quoted = batch.column("text"), batch.column("cells")
        cells, fits = _cut(text, places, width)
        if quoted.null_count < len(quoted):
            is_quoted = quoted.is_valid()
            fits = pc.if_else(is_quoted, quoted.field(CORRUPT).is_null(), fits)
            for name, place in places.items():
                cells[name] = pc.if_else(is_quoted, quoted.field(place), cells[name])
        trimmed = [
            pc.ascii_trim(cells[name], " ") if name in places else batch.column("file_symbol")
            for name in RAW_COLUMNS
        ]
        is_empty = pc.equal(pc.ascii_trim(text, " "), "")
        wrong = pc.if_else(is_empty, "the line is empty", f"the line does not have {width} fields")
        where = [batch.column(name) for name in WHERE]
        fault = pc.if_else(fits, None, wrong)
        yield pa.RecordBatch.from_arrays([*where, text, *trimmed, fault], names=_NAMES)


def _cut(
    text: pa.Array, places: Mapping[str, int], width: int
) -> tuple[dict[str, pa.Array], pa.Array]:
    """Return cells of a quote by name, and which lines have as many cells as they should."""
    lists = pc.split_pattern(text, ",")
    begins = lists.offsets.to_numpy()
    fits = pa.array(np.diff(begins) == width)
    cells = {
        name: lists.values.take(pc.if_else(fits, pa.array(begins[:-1] + place), None))
        for name, place in places.items()
    }
    return cells, fits
