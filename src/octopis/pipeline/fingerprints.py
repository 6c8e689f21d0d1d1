"""Fingerprints: whether two tables of deliveries hold the same rows, without joining them.

How many rows there are, and two sums over a hash of each, do not depend on their order. A row that
is lost, comes twice or was not asked for changes them; that two different tables agree by chance
is one case in 2^64. So millions of deliveries are checked in one pass over each table.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from octopis.pipeline.schemas import PAIRS

COLUMNS = ("rows", "hash_xor", "hash_sum")


def fingerprints(pairs: DataFrame) -> DataFrame:
    """Return one row for each `run`: its number of pairs, and the two sums."""
    hashed = F.xxhash64(*PAIRS.fieldNames())
    return (
        pairs.select("run", hashed.alias("hash"))
        .groupBy("run")
        .agg(
            F.count("*").alias("rows"),
            F.bit_xor("hash").alias("hash_xor"),
            # Half of the bits: so many fit that no table on a disk can overflow.
            F.sum(F.shiftrightunsigned("hash", 32)).alias("hash_sum"),
        )
        .select("run", *COLUMNS)
        .orderBy("run")
    )
