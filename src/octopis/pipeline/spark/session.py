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
from socket import create_connection
from tempfile import TemporaryDirectory
from typing import TypeVar
from urllib.parse import unquote, urlsplit
from zipfile import ZIP_DEFLATED, ZipFile

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.conf import SparkConf
from pyspark.core.context import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import octopis
from octopis.errors import OperationFailed, SparkUnavailable, how_to_install
from octopis.pipeline.spark.ending import (
    Interrupts,
    deaths_told,
    java_ends_first,
    quiet_accumulators,
)
from octopis.pipeline.spark.java import check_java, java_gateway, reason_in, without_class
from octopis.pipeline.spark.saying import said_again
from octopis.pipeline.spark.settings import (
    JAVA_OPTIONS,
    Settings,
    effective_settings,
    is_local,
)
from octopis.pipeline.spark.traces import TraceSource

REMOTE_VARIABLE = "SPARK_REMOTE"
_CONNECT_PORT = 15002
_REACH_S = 10.0
_LOGGING = Path(__file__).with_name("log4j2.properties")

Shipped = TypeVar("Shipped")

_PATIENT_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Java optimises what runs ten times as often as usual. A command of Spark's runs for seconds, and
a third of them went into optimising code that was hardly ever used again."""

PACKAGE = "octopis.zip"

_FILE = re.compile(r"FAILED_READ_FILE.*? reading file (\S+)\.\s")
_OURS = re.compile(r"^octopis\.errors\.\w+: (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^((?!java|org|scala)[A-Za-z_][\w.]*(?:Error|Exception): .+)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)
_LENGTH_MAX = 300


@contextmanager
def open_spark(
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Give a session, and stop it again unless it was there before.

    `master` wins; then an existing session; then the address in SPARK_REMOTE (Spark Connect); then
    what the user's spark-defaults.conf says; then all cores of this machine. `settings` win over
    that file, which wins over `defaults`; a session that is there stays as it is.

    Raises InvalidConfiguration for an address that makes no sense, SparkUnavailable where no Spark
    can be had, SparkDied where it ends before its time; whatever else Spark reports inside comes
    out as an error of our own tree.
    """
    existing = SparkSession.getActiveSession() if master is None else None
    if existing is not None:
        with plain_errors():
            prepare(existing)
            yield existing
        return
    remote = os.environ.get(REMOTE_VARIABLE)
    if master is None and remote:
        opened = _connect(remote, settings or {})
    else:
        opened = _start(effective_settings(master, settings or {}, defaults or {}))
    with opened as spark, plain_errors():
        prepare(spark)
        yield spark


def prepare(spark: SparkSession) -> None:
    """Teach a session what ours know: the trace format and, on a cluster, the package itself."""
    # PySpark logs every error that it raises, with its stack, on standard error: we say it once.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    if is_connect(spark) or not is_local(spark.sparkContext.master):
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
def _connect(remote: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    if find_spec("grpc") is None:
        hint = f"Spark Connect needs more: {how_to_install('connect')}"
        raise SparkUnavailable(f"cannot reach Spark at {remote}: {hint}")
    _check_reachable(remote)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # for a server that starts right here
    try:
        builder = SparkSession.builder.remote(remote)
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    except (PySparkException, ImportError) as failure:
        reason = f"cannot reach Spark at {remote}: is the server up? ({sentence(failure)})"
        raise SparkUnavailable(reason) from failure
    try:
        yield spark
    finally:
        spark.stop()


def _check_reachable(remote: str) -> None:
    """Raise SparkUnavailable where nobody listens: PySpark would try for ten minutes to get in."""
    try:
        place = urlsplit(remote)
        if place.scheme == "sc":  # others start a server right here
            address = place.hostname or "", place.port or _CONNECT_PORT
            create_connection(address, timeout=_REACH_S).close()
    except (OSError, ValueError) as failure:  # ValueError: what is there is no port
        reason = f"cannot reach Spark at {remote}: is the server up? ({failure})"
        raise SparkUnavailable(reason) from failure


@contextmanager
def _start(settings: Settings) -> Iterator[SparkSession]:
    # What Ctrl-C does is settled first and given up last: so it leaves no folder at any moment.
    with (
        java_ends_first() as interrupts,
        TemporaryDirectory(prefix="octopis-spark-", ignore_cleanup_errors=True) as folder,
    ):
        check_java()
        os.environ.pop(REMOTE_VARIABLE, None)  # PySpark would follow it, whatever master there is
        if is_local(settings.master):
            os.environ["PYSPARK_PYTHON"] = sys.executable
        else:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        wanted = settings.passed | {JAVA_OPTIONS: _java_options(settings, Path(folder))}
        log = Path(folder) / "java.log"
        with (
            log.open("wb") as sink,
            said_again(log),
            java_gateway(wanted, sink, log, interrupts) as (conf, java),
            deaths_told(java, settings.memory, log),
        ):
            spark = _session(conf, settings.master, log, interrupts)
            try:
                yield spark
            finally:
                with suppress(Py4JError, OSError):  # a Java that is gone needs no stopping
                    spark.stop()


def _java_options(settings: Settings, folder: Path) -> str:
    """Return options that keep Java quiet, and what it writes meanwhile in a folder of ours.

    A Java that is killed removes nothing. Of options given twice, Java takes the later.
    """
    own = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", f"-Djava.io.tmpdir={folder}"
    return " ".join([_PATIENT_COMPILER, *map(shlex.quote, own), settings.java_options]).strip()


def _session(conf: SparkConf, master: str, log: Path, interrupts: Interrupts) -> SparkSession:
    try:
        quiet_accumulators(SparkContext.getOrCreate(conf))
        interrupts.listen()
        return SparkSession.builder.config(conf=conf).getOrCreate()
    except Py4JJavaError as failure:
        reason = f"Spark did not start on {master}: {sentence(failure)}"
        raise SparkUnavailable(reason) from failure
    except (PySparkException, Py4JError) as failure:
        raise SparkUnavailable(f"Spark did not start on {master}: {reason_in(log)}") from failure


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
    found = causes[-1] if causes else without_class((lines or [type(failure).__name__])[0])
    file = _FILE.search(text)
    if file is not None:
        found = f"cannot read {unquote(file[1]).removeprefix('file://')}: {found}"
    return found if len(found) <= _LENGTH_MAX else found[:_LENGTH_MAX] + "..."
