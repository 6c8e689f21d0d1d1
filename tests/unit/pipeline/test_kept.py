import pytest
from pyspark.sql import SparkSession

from octopis.pipeline.spark.session import cached


def test_frame_is_kept_inside_and_forgotten_after(spark: SparkSession):
    with cached(spark.range(3)) as frame:
        assert frame.is_cached
        assert frame.count() == 3
    assert not frame.is_cached


def test_what_goes_wrong_inside_is_not_hidden_by_a_spark_that_is_gone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    frame = spark.range(3)

    def gone(*_: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(frame, "unpersist", gone, raising=False)
    with pytest.raises(KeyboardInterrupt), cached(frame):
        raise KeyboardInterrupt
