"""The headers of quote files, looked at before Spark starts: a typo then costs no seconds.

Spark reads the same lines again later, from wherever the files are then.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.quote_files import find_files, header_columns, places_of
from octopis.pipeline.ingest.reading import first_lines, is_padres


def check_headers(paths: list[Path]) -> None:
    """Raise InvalidConfiguration where files are missing, or do not name a quote's columns."""
    files = find_files(paths)
    for path, first in first_lines(files).items():
        if not is_padres(first):
            header_columns(first, str(path))
    for path in files.parquets:
        try:
            names = pq.read_schema(path).names
        except (OSError, pa.ArrowInvalid) as failure:
            raise InvalidConfiguration(f"{path} is not a whole Parquet file") from failure
        places_of(names, str(path))
