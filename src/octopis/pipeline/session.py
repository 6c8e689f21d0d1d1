"""The Spark session: local by default, a cluster by one option, and no Java left behind.

Workers run the driver's interpreter. On a cluster the package travels to them as a zip.
"""

import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.conf import SparkConf
from pyspark.core.context import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from octopis.errors import SparkUnavailable
from octopis.pipeline.failures import plain_errors, sentence
from octopis.pipeline.java import check_java
from octopis.pipeline.package import package_to_ship
from octopis.pipeline.trace_source import TraceSource

LOCAL = "local[*]"
REMOTE_VARIABLE = "SPARK_REMOTE"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_STOP_S = 20

Process = subprocess.Popen[bytes]
Shipped = TypeVar("Shipped")

SETTINGS = {
    "spark.app.name": "octopis",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
    "spark.sql.parquet.compression.codec": "zstd",
}
"""What every session of ours starts with; Spark's own files and --conf may say more."""


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


@contextmanager
def _start(master: str, settings: Mapping[str, str] | None) -> Iterator[SparkSession]:
    check_java()
    os.environ.pop(REMOTE_VARIABLE, None)  # PySpark would follow it, whatever master it is given
    wanted = {**SETTINGS, "spark.master": master, **(settings or {})}
    if _is_local(master):
        # Nothing leaves this machine, and the machine's own name need not be known to anyone.
        wanted |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = shlex.quote(f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
    wanted[_JAVA_OPTIONS] = f"{wanted.get(_JAVA_OPTIONS, '')} {quiet}".strip()
    with TemporaryDirectory(prefix="octopis-spark-") as folder:
        log = Path(folder) / "java.log"
        with log.open("wb") as sink, _gateway(wanted, sink, log) as (conf, process):
            before = signal.getsignal(signal.SIGINT)
            spark = _session(conf, master, log)
            stopped = threading.Event()
            try:
                _set_ctrl_c(lambda *_: _stop_at_once(process, stopped))
                yield spark
            except Exception:
                if stopped.is_set():  # PySpark tidied up, and its failure hid the Ctrl-C
                    raise KeyboardInterrupt from None
                raise
            finally:
                _set_ctrl_c(before)
                logging.disable(logging.NOTSET)
                with suppress(Py4JError, OSError):  # a Java that is gone needs no stopping
                    spark.stop()


def _session(conf: SparkConf, master: str, log: Path) -> SparkSession:
    try:
        return SparkSession.builder.config(conf=conf).getOrCreate()
    except (PySparkException, Py4JError) as failure:
        raise SparkUnavailable(f"Spark did not start on {master}: {_last_line(log)}") from failure


@contextmanager
def _gateway(
    wanted: Mapping[str, str], sink: IO[bytes], log: Path
) -> Iterator[tuple[SparkConf, Process]]:
    """Start Java with its chatter in a file, and see to it that it ends."""
    conf = SparkConf(loadDefaults=False)
    for name, value in wanted.items():
        conf.set(name, value)
    try:
        # PySpark would lose sight of the Java that it is starting, which would then stay.
        with _ctrl_c_noted() as noted:
            gateway: Any = launch_gateway(conf, {"stderr": sink})  # type: ignore[no-untyped-call]
    except PySparkException as failure:
        raise SparkUnavailable(f"Java did not start for Spark: {_last_line(log)}") from failure
    process: Process = gateway.proc
    try:
        if noted.is_set():
            raise KeyboardInterrupt
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - the only way in
        yield conf, process
    finally:
        with suppress(Py4JError, OSError):
            gateway.shutdown()
        _end(process)
        # So that another can start.
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        SparkContext._active_spark_context = None  # noqa: SLF001
        SparkSession._instantiatedSession = None  # noqa: SLF001


@contextmanager
def _ctrl_c_noted() -> Iterator[threading.Event]:
    """Let Ctrl-C do nothing but set what is given, for as long as something must not be cut off."""
    noted = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    _set_ctrl_c(lambda *_: noted.set())
    try:
        yield noted
    finally:
        _set_ctrl_c(before)


def _set_ctrl_c(handler: Any) -> None:
    """Say what Ctrl-C does; only the main thread may, and only there does it arrive."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def _stop_at_once(process: Process, stopped: threading.Event) -> None:
    """End Java before anything else, so that no task writes on while its output is removed.

    PySpark's own handler would ask Java to cancel the jobs, over the very connection that waits
    for an answer.
    """
    stopped.set()
    logging.disable(logging.CRITICAL)  # Py4J logs what it was doing, with its stack
    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    if context is not None:  # its server would say, with a stack, that Java has gone
        context._accumulatorServer.handle_error = _say_nothing  # noqa: SLF001
    process.terminate()
    _end(process)
    raise KeyboardInterrupt


def _say_nothing(*_facts: object) -> None:
    pass


def _end(process: Process) -> None:
    """Let Java end by itself, which it does when its input closes; else end it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"
