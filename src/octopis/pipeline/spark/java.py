"""Java for Spark: is there one that Spark can run on, and no process of it is ever left behind.

It is started with its chatter in a file, from which the one line is taken that says what went
wrong.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

from py4j.protocol import Py4JError
from pyspark import java_gateway as pyspark_gateway
from pyspark.conf import SparkConf
from pyspark.core.context import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from octopis.errors import SparkUnavailable

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


class Starting(Protocol):
    """Who wants to know of Java from its first moment, also while PySpark still waits for it."""

    @contextmanager
    def java_starts(self) -> Iterator[Callable[[Process], None]]:
        """Give what is told of the process at once; raise KeyboardInterrupt in the end."""


@contextmanager
def java_gateway(
    wanted: Mapping[str, str], sink: IO[bytes], log: Path, starting: Starting
) -> Iterator[tuple[SparkConf, Process]]:
    """Start Java with its chatter in a file, and see to it that it ends."""
    conf = SparkConf(loadDefaults=False)
    for name, value in wanted.items():
        conf.set(name, value)
    with ExitStack() as stack:
        with starting.java_starts() as tell:

            def started(process: Process) -> None:
                stack.callback(end_java, process)
                tell(process)

            with _processes_told(started), _failures_told(log):
                # A Java that is ended while it starts may say so on either.
                said = {"stdout": sink, "stderr": sink}
                gateway: Any = launch_gateway(conf, said)  # type: ignore[no-untyped-call]
            stack.callback(_forget, gateway)
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - the only way in
        yield conf, gateway.proc


@contextmanager
def _processes_told(started: Callable[[Process], None]) -> Iterator[None]:
    """Tell of the process that PySpark starts when it starts it.

    PySpark itself tells only once Java has said its port, seconds later; interrupted before, it
    leaves a Java that nobody knows of.
    """
    module: Any = pyspark_gateway
    usual = module.Popen

    def start(*words: Any, **options: Any) -> Process:
        process: Process = usual(*words, **options)
        started(process)
        return process

    module.Popen = start
    try:
        yield
    finally:
        module.Popen = usual


@contextmanager
def _failures_told(log: Path) -> Iterator[None]:
    try:
        yield
    except OSError as failure:
        raise SparkUnavailable(f"Java did not start for Spark: {failure}") from failure
    except (PySparkException, Py4JError) as failure:
        raise SparkUnavailable(f"Java did not start for Spark: {reason_in(log)}") from failure


def _forget(gateway: Any) -> None:
    """Let PySpark forget its Java, so that another can start."""
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001


def end_java(process: Process) -> None:
    """Let Java end by itself, which it does when its input closes; else end it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


TOO_LITTLE_MEMORY = "its memory did not suffice"
_OUT_OF_MEMORY_STATUS = 52
"""With which Spark ends itself when a task has taken all memory."""


def how_it_ended(status: int, log: Path) -> str:
    """Return what has become of a Java that was running."""
    if status == _OUT_OF_MEMORY_STATUS:
        return TOO_LITTLE_MEMORY
    if status == -signal.SIGKILL:
        return "its Java was killed, as happens when the machine has no memory left"
    if status < 0:
        return f"its Java was ended from outside ({signal.Signals(-status).name})"
    return f"its Java has ended with status {status} ({reason_in(log)})"


_SAYS_NOTHING = re.compile(r"^\s*(at |\.\.\. \d+ more|Error: Could not create|Error: A fatal)")
_CAUSE = re.compile(r"^\s*Caused by: (.+)$")
_THROWN = re.compile(r"^(?:Exception in thread \"[^\"]*\" )?((?:[a-z_]\w*\.)+[A-Z][\w.$]*: .+)$")
_CLASS = re.compile(r"^(?:[a-z_]\w*\.)+[A-Z][\w.$]*: ")


def reason_in(log: Path) -> str:
    """Return why Java failed, from what it said: the deepest cause, or what was thrown last.

    Its last line would be the end of a stack.
    """
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip() and not _SAYS_NOTHING.match(line)]
    for form in (_CAUSE, _THROWN):
        found = [match[1] for match in map(form.match, lines) if match]
        if found:
            return without_class(found[-1])
    return lines[-1].strip() if lines else "it said nothing"


def without_class(message: str) -> str:
    """Return what a Java exception says without its class."""
    return _CLASS.sub("", message).strip()
