"""Java for Spark: is there one that Spark can run on, and no process of it is ever left behind.

It is started with its chatter in a file. Ctrl-C ends it before anything else, also while it starts,
and is what the user hears of.
"""

import logging
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from py4j.protocol import Py4JError
from pyspark.conf import SparkConf
from pyspark.core.context import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from octopis.errors import SparkUnavailable
from octopis.signals import handled, interrupts_wait

Process = subprocess.Popen[bytes]
VERSION_MIN = 17
_STOP_S = 20
_HOW = "install Java 17 or newer (openjdk-17-jre-headless on Debian) or set JAVA_HOME"


def check_java() -> int:
    """Return the version of the Java that Spark will start, or raise SparkUnavailable."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if command is None:
        raise SparkUnavailable(f"Spark needs Java, and there is none on the PATH: {_HOW}")
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [command, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise SparkUnavailable(f"Spark needs Java, and {command} does not run: {_HOW}") from failure
    version = java_version(answer.stderr + answer.stdout)
    if version is None:
        raise SparkUnavailable(f"Spark needs Java, and {command} tells no version: {_HOW}")
    if version < VERSION_MIN:
        raise SparkUnavailable(f"{command} is Java {version}, too old for Spark: {_HOW}")
    return version


def java_version(text: str) -> int | None:
    """Return the major version in what `java -version` prints; 8 for the old style 1.8."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


@contextmanager
def java_gateway(
    wanted: Mapping[str, str], sink: IO[bytes], log: Path
) -> Iterator[tuple[SparkConf, Process]]:
    """Start Java with its chatter in a file, and see to it that it ends."""
    conf = SparkConf(loadDefaults=False)
    for name, value in wanted.items():
        conf.set(name, value)
    # PySpark, interrupted while it starts Java, removes the folder where Java wants to say its
    # port; Java then waits for ever.
    with interrupts_wait() as let_them_come:
        try:
            gateway: Any = launch_gateway(conf, {"stderr": sink})  # type: ignore[no-untyped-call]
        except PySparkException as failure:
            raise SparkUnavailable(f"Java did not start for Spark: {last_line(log)}") from failure
        process: Process = gateway.proc
        try:
            let_them_come()
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
def java_ends_first(process: Process) -> Iterator[Callable[[], None]]:
    """Let Ctrl-C end Java before anything else.

    What is given says so anew, for when PySpark has put a handler of its own in our place.
    """
    interrupted = threading.Event()

    def stop(*_: object) -> None:
        interrupted.set()
        _stop_at_once(process)

    try:
        with handled(signal.SIGINT, stop) as listen, interrupt_wins(interrupted):
            yield listen
    finally:
        logging.disable(logging.NOTSET)


def _stop_at_once(process: Process) -> None:
    """End Java before anything else, so that no task writes on while its output is removed.

    PySpark's own handler would ask Java to cancel the jobs, over the very connection that waits
    for an answer.
    """
    logging.disable(logging.CRITICAL)  # Py4J logs what it was doing, with its stack
    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:  # it would say, with a stack, that Java has gone
        server.handle_error = _say_nothing
    process.terminate()
    _end(process)
    raise KeyboardInterrupt


@contextmanager
def interrupt_wins(interrupted: threading.Event) -> Iterator[None]:
    """Let Ctrl-C be what went wrong: PySpark tidies up, fails as Java is gone, and hides it."""
    try:
        yield
    except Exception as failure:
        if interrupted.is_set():
            raise KeyboardInterrupt from failure
        raise


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


def last_line(log: Path) -> str:
    """Return the last thing that Java said."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"
