"""The Spark session: local by default, a cluster by one option, and no Java left behind.

Workers run the driver's interpreter. On a cluster the installed package travels to them as a zip,
so that executors need nothing of ours. Whatever Spark reports comes out as an error of our own
tree, in one sentence.
"""

import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar
from zipfile import ZIP_DEFLATED, ZipFile

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.conf import SparkConf
from pyspark.core.context import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import octopis
from octopis.errors import OperationFailed, SparkUnavailable
from octopis.pipeline.spark.java import check_java, java_ends_first, java_gateway, last_line
from octopis.pipeline.spark.traces import TraceSource

LOCAL = "local[*]"
REMOTE_VARIABLE = "SPARK_REMOTE"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

Shipped = TypeVar("Shipped")

SETTINGS = {
    "spark.app.name": "octopis",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.parquet.compression.codec": "zstd",
}
"""What every session of ours starts with; Spark's own files and --conf may say more."""

LOCAL_SETTINGS = {"spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1))}
"""The same on this machine alone. On a cluster nobody knows here how many cores there are: Spark
starts from its own default there, and puts partitions together to fit what it finds."""

_PATIENT_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Java optimises what runs ten times as often as usual. A command of Spark's runs for seconds, and
a third of them went into optimising code that was hardly ever used again."""

PACKAGE = "octopis.zip"

_OURS = re.compile(r"^octopis\.errors\.\w+: (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^((?!java|org|scala)[A-Za-z_][\w.]*(?:Error|Exception): .+)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)
_LENGTH_MAX = 300


@contextmanager
def open_spark(
    master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Give a session, and stop it again unless it was there before.

    `master` wins; then an existing session; then the address in SPARK_REMOTE (Spark Connect); then
    all cores of this machine. Raises SparkUnavailable where none can be had; whatever Spark
    reports inside comes out as an error of our own tree.
    """
    existing = SparkSession.getActiveSession() if master is None else None
    if existing is not None:
        with plain_errors():
            prepare(existing)
            yield existing
        return
    remote = os.environ.get(REMOTE_VARIABLE)
    opened = _connect(remote) if master is None and remote else _start(master or LOCAL, settings)
    with opened as spark, plain_errors():
        prepare(spark)
        yield spark


def prepare(spark: SparkSession) -> None:
    """Teach a session what ours know: the trace format and, on a cluster, the package itself."""
    # PySpark logs every error that it raises, with its stack, on standard error: we say it once.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    if is_connect(spark) or not _is_local(spark.sparkContext.master):
        spark.addArtifacts(str(package_to_ship()), pyfile=True)
    spark.dataSource.register(TraceSource)


def is_connect(spark: SparkSession) -> bool:
    """Tell whether the session speaks to a server far away, with no Java on this side."""
    return "connect" in type(spark).__module__


def ship(spark: SparkSession, value: Shipped) -> Callable[[], Shipped]:
    """Broadcast a value to the executors; call what is returned there to have it."""
    if is_connect(spark):
        return lambda: value  # there is no broadcast: it travels with the function
    broadcast = spark.sparkContext.broadcast(value)
    return lambda: broadcast.value


def task_count(spark: SparkSession) -> int:
    """Return into how many tasks even work is cut: a few for each core."""
    if is_connect(spark):
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 8)
    return 4 * spark.sparkContext.defaultParallelism


def _is_local(master: str | None) -> bool:
    return (master or "").partition("[")[0] == "local"


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """Have Spark keep a frame once it is computed, and forget it in the end."""
    frame.persist()
    try:
        yield frame
    finally:
        with suppress(Py4JError, PySparkException, OSError):  # a Spark that is gone keeps nothing
            frame.unpersist()


@contextmanager
def _connect(remote: str) -> Iterator[SparkSession]:
    if find_spec("grpc") is None:
        hint = "Spark Connect needs more: pip install 'octopis[connect]'"
        raise SparkUnavailable(f"cannot reach Spark at {remote}: {hint}")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # for a server that starts right here
    try:
        spark = SparkSession.builder.remote(remote).getOrCreate()
    except (PySparkException, ImportError) as failure:
        reason = f"cannot reach Spark at {remote}: is the server up? ({sentence(failure)})"
        raise SparkUnavailable(reason) from failure
    try:
        yield spark
    finally:
        spark.stop()


def own_settings(master: str, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a session at `master` starts with; what is given wins."""
    local = LOCAL_SETTINGS if _is_local(master) else {}
    return {**SETTINGS, **local, "spark.master": master, **(given or {})}


@contextmanager
def _start(master: str, settings: Mapping[str, str] | None) -> Iterator[SparkSession]:
    check_java()
    os.environ.pop(REMOTE_VARIABLE, None)  # PySpark would follow it, whatever master it is given
    wanted = own_settings(master, settings)
    if _is_local(master):
        # Nothing leaves this machine, and the machine's own name need not be known to anyone.
        wanted |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = shlex.quote(f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
    wanted[_JAVA_OPTIONS] = f"{_PATIENT_COMPILER} {wanted.get(_JAVA_OPTIONS, '')} {quiet}"
    with TemporaryDirectory(prefix="octopis-spark-") as folder:
        log = Path(folder) / "java.log"
        with (
            log.open("wb") as sink,
            java_gateway(wanted, sink, log) as (conf, process),
            java_ends_first(process) as listen,
        ):
            spark = _session(conf, master, log, listen)
            try:
                yield spark
            finally:
                with suppress(Py4JError, OSError):  # a Java that is gone needs no stopping
                    spark.stop()


def _session(conf: SparkConf, master: str, log: Path, listen: Callable[[], None]) -> SparkSession:
    try:
        SparkContext.getOrCreate(conf)
        listen()
        return SparkSession.builder.config(conf=conf).getOrCreate()
    except (PySparkException, Py4JError) as failure:
        raise SparkUnavailable(f"Spark did not start on {master}: {last_line(log)}") from failure


def package_to_ship() -> Path:
    """Return the zip; it stays until this process ends, for executors that start late."""
    path = Path(_home().name) / PACKAGE
    return path if path.exists() else zip_package(path.parent)


@cache
def _home() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="octopis-package-")


def zip_package(folder: Path) -> Path:
    """Write the package that is running right now into `folder`, and return the zip's path."""
    root = Path(octopis.__file__).parent
    target = folder / PACKAGE
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, Path(root.name) / path.relative_to(root))
    return target


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise OperationFailed with the sentence that matters where Spark raises its own errors."""
    try:
        yield
    except (PySparkException, Py4JError) as failure:
        raise OperationFailed(f"Spark could not finish: {sentence(failure)}") from failure


def sentence(failure: Exception) -> str:
    """Return our own sentence from a worker, or a worker's last, or the deepest cause of Java."""
    text = str(failure)
    if isinstance(failure, Py4JJavaError):
        text = f"{failure.java_exception}\n{text}"
    ours = _OURS.findall(text)
    if ours:
        return str(ours[-1])
    from_workers = _PYTHON.findall(text) if "Python worker" in text else []
    if from_workers:
        return str(from_workers[-1])
    causes = _CAUSE.findall(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = str(causes[-1] if causes else (lines or [type(failure).__name__])[0])
    return found if len(found) <= _LENGTH_MAX else found[:_LENGTH_MAX] + "..."
