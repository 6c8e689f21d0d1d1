import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from octopis.cli.main import main
from octopis.pipeline.spark.session import open_spark

Run = Callable[..., tuple[int, str, str]]

# Started in the background of a shell we would ignore Ctrl-C, and so would all commands that tests
# start, and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# For every Spark that tests start, also in commands: what it says is quicker for small frames.
os.environ["SPARK_CONF_DIR"] = str(Path(__file__).parent / "support" / "spark")

# Laws hold on a busy machine, too: no example fails because others were at work meanwhile.
settings.register_profile("octopis", deadline=None)
settings.load_profile("octopis")

LONG_FIRST = (
    "browser/test_page.py",
    "pipeline/test_streaming_kills.py",
    "integration/test_demo.py",
    "pipeline/test_evaluate.py",
    "pipeline/test_streaming_alerts.py",
    "pipeline/test_cluster.py",
    "unit/evaluation/test_evaluate.py",
    "integration/test_permission_matrix.py",
    "integration/test_overlay_up.py",
    "integration/test_overlay_in_use.py",
    "integration/test_live_overload.py",
    "unit/test_docs.py",
    "unit/pipeline/test_session.py",
    "pipeline/test_bench.py",
    "pipeline/test_streaming_source.py",
    "unit/cli/test_bench.py",
    "attack/test_security_crowds.py",
)
"""Files that begin first: one that takes a minute must not be the last, alone on one core.

What stands first of all begins on one worker, and others take work only from behind: so one worker
alone starts the overlay and the browser that all tests of the page share.
"""

SETTINGS = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "3"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let files that take long come first, and all others as they are."""
    root = Path(__file__).parent
    places = {root / name: number for number, name in enumerate(LONG_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


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
