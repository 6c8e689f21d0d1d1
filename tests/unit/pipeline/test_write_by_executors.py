from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from octopis.pipeline.spark.writing import write_by_executors

SCHEMA = pa.schema([("name", pa.dictionary(pa.int32(), pa.string())), ("id", pa.int64())])


def doubled(batches):
    for batch in batches:
        ids = pc.multiply(batch.column("id"), 2)
        names = ids.cast(pa.string()).dictionary_encode()
        yield (pa.RecordBatch.from_arrays([names, ids], schema=SCHEMA),)


def test_executors_write_what_they_make(spark: SparkSession, tmp_path: Path):
    out = tmp_path / "t.parquet"
    assert write_by_executors(spark.range(0, 100, 1, 3), {out: SCHEMA}, doubled) == [100]
    assert len(list(out.iterdir())) == 3
    assert sorted(pq.read_table(out).column("id").to_pylist()) == list(range(0, 200, 2))
    frame = spark.read.schema("name string, id long").parquet(str(out))
    assert frame.where("name <> cast(id as string)").count() == 0
    assert frame.count() == 100


def test_file_of_a_task_that_was_given_up_does_not_stay(spark: SparkSession, tmp_path: Path):
    out = tmp_path / "t.parquet"

    def also_strays(batches):
        (out / "part-00000-999.parquet").write_bytes(b"half")
        yield from doubled(batches)

    write_by_executors(spark.range(0, 10, 1, 2), {out: SCHEMA}, also_strays)
    assert pq.read_table(out).num_rows == 10


def test_failure_is_not_taken_for_an_empty_table(spark: SparkSession, tmp_path: Path):
    def fail(_batches):
        raise ValueError("no")

    with pytest.raises(PySparkException):
        write_by_executors(spark.range(3), {tmp_path / "t.parquet": SCHEMA}, fail)


def test_one_pass_writes_several_tables(spark: SparkSession, tmp_path: Path):
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"

    def twice(batches):
        for (batch,) in doubled(batches):
            yield batch, batch.slice(0, 2)

    rows = write_by_executors(spark.range(0, 100, 1, 3), {one: SCHEMA, other: SCHEMA}, twice)
    assert rows == [100, 6]
    assert [pq.read_table(table).num_rows for table in (one, other)] == rows
