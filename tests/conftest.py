import signal
import sys
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from octopis.cli.main import main
from octopis.pipeline.spark.session import open_spark

Run = Callable[..., tuple[int, str, str]]

# Started in the background of a shell we would ignore Ctrl-C, and so would all commands that tests
# start, and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    # Small frames by the hundred: compiling costs more than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture
def octopis(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the whole command in this process; return exit status, standard output and error."""

    def run_main(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["octopis", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), printed.out, printed.err

    return run_main


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One real Spark for each process of pytest; commands that run in it use the same one."""
    with open_spark("local[2]", SETTINGS) as session:
        yield session
