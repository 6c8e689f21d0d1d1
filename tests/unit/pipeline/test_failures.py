import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.pipeline.spark.failures import plain_errors, sentence


def test_our_own_sentence_from_a_worker_is_found():
    text = "Traceback...\n  File x\noctopis.errors.InvalidConfiguration: a is not b\n\nand so on"
    assert sentence(PySparkException(text)) == "a is not b"


def test_deepest_cause_of_java_is_found():
    text = "Job aborted.\nCaused by: java.io.IOException: first\nCaused by: x.Y: disk is full\n\tat"
    assert sentence(PySparkException(text)) == "disk is full"


def test_fault_in_a_worker_is_found():
    text = "An exception was thrown from the Python worker:\nTraceback\nKeyError: 'x'\n\tat java.Y"
    assert sentence(PySparkException(text)) == "KeyError: 'x'"


def test_long_sentences_are_cut():
    assert len(sentence(PySparkException("x" * 1000))) < 310


def test_errors_of_workers_come_out_as_ours(spark: SparkSession):
    def fail(batches):
        for _ in batches:
            raise InvalidConfiguration("the worker says no")
        yield

    said = "Spark could not finish: the worker says no"
    with pytest.raises(OperationFailed, match=said), plain_errors():
        spark.range(0, 1, 1, 1).mapInArrow(fail, "id long").collect()
