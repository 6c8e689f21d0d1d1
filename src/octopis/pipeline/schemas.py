"""What the pipeline's tables hold, as Spark types, and paths of their files as Spark has them."""

import re
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from octopis.trace.schemas import NAME

QUARANTINE = T.StructType(
    [
        T.StructField("file", T.StringType()),
        T.StructField("line", T.LongType()),
        T.StructField("reason", T.StringType()),
        T.StructField("text", T.StringType()),
    ]
)

PAIRS = T.StructType(
    [
        T.StructField("publisher", T.StringType()),
        T.StructField("sequence", T.LongType()),
        T.StructField("subscription", T.StringType()),
    ]
)
"""Which subscription must get which notification."""


def quoted(name: str) -> str:
    """Return a column's name as Spark takes it for one name, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def spark_schema(schema: pa.Schema) -> T.StructType:
    """Return an Arrow schema as Spark's; names are plain text there."""
    plain = [
        pa.field(field.name, pa.string() if field.type == NAME else field.type) for field in schema
    ]
    return from_arrow_schema(pa.schema(plain))


def literal_path(path: Path) -> str:
    """Return a path in which Spark sees no pattern."""
    text = str(path)
    return "".join("\\" + character if character in "[]{}*?\\" else character for character in text)


def plain_path(url: Column) -> Column:
    """Return file:///a%20b, as Spark tells where a row is from, as /a b; a plus sign is itself."""
    decoded = F.url_decode(F.replace(url, F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(decoded, r"^file:/+", "/")


def plain_url(url: str) -> str:
    """Return the same of one address."""
    return re.sub(r"^file:/+", "/", unquote(url))
