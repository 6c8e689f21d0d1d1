"""The format "octopis": what Spark asks for when somebody reads from the overlay.

Spark imports this file whatever format a program uses, so all that is heavy is imported when it is
asked for, and a PySpark that is too old is told from the first real use.
"""

import re
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql.datasource import DataSource

from octopis.errors import InvalidConfiguration

if TYPE_CHECKING:
    from pyspark.sql import types as T
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
    )

LEAST = (4, 2)


class OctopisSource(DataSource):
    """Notifications of an overlay as rows; see docs/streaming.md for options and columns."""

    @classmethod
    def name(cls) -> str:
        """Return what the format is called."""
        return "octopis"

    def schema(self) -> "T.StructType":
        """Return the columns that there are where a program names none."""
        check_version(pyspark.__version__)
        from octopis.pipeline.streaming.columns import every_column  # noqa: PLC0415 - heavy

        return every_column()

    def reader(self, schema: "T.StructType") -> "DataSourceReader":
        """Return what reads a range of a durable subscription, once."""
        check_version(pyspark.__version__)
        from octopis.pipeline.streaming.batch import BatchReader  # noqa: PLC0415 - heavy
        from octopis.pipeline.streaming.options import batch_options  # noqa: PLC0415

        return BatchReader(batch_options(self.options), schema)

    def streamReader(self, schema: "T.StructType") -> "DataSourceStreamReader":  # noqa: N802
        """Return what reads on and on."""
        check_version(pyspark.__version__)
        from octopis.pipeline.streaming.options import stream_options  # noqa: PLC0415 - heavy

        options = stream_options(self.options)
        if options.subscription:
            from octopis.pipeline.streaming.reader import StreamReader  # noqa: PLC0415

            return StreamReader(options, schema)
        from octopis.pipeline.streaming.passing import PassingReader  # noqa: PLC0415

        return PassingReader(options, schema)

    def writer(self, schema: "T.StructType", overwrite: bool) -> "DataSourceArrowWriter":
        """Return what publishes a frame, once."""
        check_version(pyspark.__version__)
        from octopis.pipeline.streaming.sink import BatchSink, check_append  # noqa: PLC0415 - heavy
        from octopis.pipeline.streaming.sink_options import sink_options  # noqa: PLC0415

        check_append(overwrites=overwrite, streams=False)
        return BatchSink(sink_options(self.options, streams=False), schema)

    def streamWriter(  # noqa: N802
        self, schema: "T.StructType", overwrite: bool
    ) -> "DataSourceStreamArrowWriter":
        """Return what publishes batch after batch, each once."""
        check_version(pyspark.__version__)
        from octopis.pipeline.streaming.sink import StreamSink, check_append  # noqa: PLC0415 - heavy
        from octopis.pipeline.streaming.sink_options import sink_options  # noqa: PLC0415

        check_append(overwrites=overwrite, streams=True)
        return StreamSink(sink_options(self.options, streams=True), schema)


def check_version(version: str) -> None:
    """Raise InvalidConfiguration where a PySpark lacks what the source is made of."""
    found = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if found < LEAST:
        least = ".".join(map(str, LEAST))
        raise InvalidConfiguration(
            f'format("octopis") needs PySpark {least} or newer, and this is {version}: '
            f"pip install 'pyspark>={least}' for the driver and the executors"
        )
