from pyspark.sql import types as T

from octopis.pipeline.schemas import spark_schema
from octopis.trace.schemas import SCHEMAS


def test_names_of_traces_are_plain_text_on_spark():
    schema = spark_schema(SCHEMAS["deliveries"])
    assert schema["publisher"].dataType == T.StringType()
    assert schema["hops"].dataType == T.ShortType()
    assert schema.fieldNames() == SCHEMAS["deliveries"].names
