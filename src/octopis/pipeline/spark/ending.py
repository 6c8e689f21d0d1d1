"""How a Spark ends before its time: by Ctrl-C, by a stop from outside, or as its Java dies.

Whatever it is, the user hears one sentence, and not what PySpark makes of a Java that is gone.
"""

import logging
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.core.context import SparkContext
from pyspark.errors import PySparkException

from octopis.errors import SparkDied
from octopis.pipeline.spark.java import TOO_LITTLE_MEMORY, Process, end_java, how_it_ended
from octopis.signals import handled, stops_as_interrupts

_REAP_S = 2
_OUT_OF_MEMORY = "java.lang.OutOfMemoryError"


class Interrupts:
    """What Ctrl-C does while there is a Spark, or one is being started or stopped.

    It ends Java before anything else, so that no task writes on while its output is removed.
    Pressed again it only makes that quicker: what was begun is being tidied up.
    """

    def __init__(self) -> None:
        self.heard = threading.Event()
        self._java: Process | None = None
        self._starts = False
        self.listen: Callable[[], None] = lambda: None
        """Says so anew, for when PySpark has put a handler of its own in our place."""

    @contextmanager
    def java_starts(self) -> Iterator[Callable[[Process], None]]:
        """Give what is told of a Java that PySpark starts; raise KeyboardInterrupt in the end.

        Raised in the midst, it would make PySpark remove the folder where Java wants to say its
        port, and Java wait for ever. PySpark notices by itself that Java has ended.
        """
        self._starts = True
        try:
            yield self._tell
        finally:
            self._starts = False
            if self.heard.is_set():
                raise KeyboardInterrupt

    def _tell(self, java: Process) -> None:
        self._java = java
        if self.heard.is_set():
            java.terminate()

    def stop(self, *_facts: object) -> None:
        """End Java, and raise KeyboardInterrupt.

        PySpark's own handler would ask Java to cancel the jobs, over the very connection that
        waits for an answer.
        """
        java, again = self._java, self.heard.is_set()
        self.heard.set()
        if java is not None:
            java.kill() if again else java.terminate()
        if again or self._starts:
            return
        if java is not None:
            end_java(java)
        raise KeyboardInterrupt


@contextmanager
def java_ends_first() -> Iterator[Interrupts]:
    """Let Ctrl-C, and a polite stop from outside, end Java before anything else."""
    interrupts = Interrupts()
    with (
        _quiet_about_java(interrupts.heard),
        stops_as_interrupts(),
        handled(signal.SIGINT, interrupts.stop) as interrupts.listen,
        interrupt_wins(interrupts.heard),
    ):
        yield interrupts


@contextmanager
def interrupt_wins(interrupted: threading.Event) -> Iterator[None]:
    """Let Ctrl-C be what went wrong: PySpark tidies up, fails as Java is gone, and hides it."""
    try:
        yield
    except Exception as failure:
        if interrupted.is_set():
            raise KeyboardInterrupt from failure
        raise


@contextmanager
def _quiet_about_java(interrupted: threading.Event) -> Iterator[None]:
    """Keep Py4J from logging, with its stack, and PySpark from warning of what is raised anyway.

    Ctrl-C may also come while Python forgets an object, where nobody can catch it: it would be
    shown with its stack, though it is heard.
    """
    own, root = logging.getLogger("py4j"), logging.getLogger()
    level, usual = own.level, sys.unraisablehook

    def hook(facts: Any) -> None:
        if not interrupted.is_set():
            usual(facts)

    own.setLevel(logging.CRITICAL + 1)
    root.addFilter(_is_not_py4j)  # most of it is logged at the root
    sys.unraisablehook = hook
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM")
            yield
    finally:
        sys.unraisablehook = usual
        root.removeFilter(_is_not_py4j)
        own.setLevel(level)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def quiet_accumulators(context: SparkContext) -> None:
    """Keep the thread that gathers accumulators from saying, with a stack, that Java has gone."""
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = _say_nothing


def _say_nothing(*_facts: object) -> None:
    pass


@contextmanager
def deaths_told(java: Process, memory: str, log: Path) -> Iterator[None]:
    """Raise SparkDied where anything fails because Java has ended, or had too little memory."""
    try:
        yield
    except Exception as failure:
        reason = _cause_of_death(java, failure, log)
        if reason is None:
            raise
        raise SparkDied(reason, memory) from failure


def _cause_of_death(java: Process, failure: Exception, log: Path) -> str | None:
    """Return what has become of Java; None if that is not what went wrong."""
    chain = list(_chain(failure))
    sparks = any(isinstance(each, Py4JError | PySparkException) for each in chain)
    # A Java that ends for lack of memory may answer anything at all on its way.
    if sparks and _OUT_OF_MEMORY in log.read_text(encoding="utf-8", errors="replace"):
        return TOO_LITTLE_MEMORY
    if any(_OUT_OF_MEMORY in _text(each) for each in chain):
        return TOO_LITTLE_MEMORY
    # The connection may break a moment before the process has ended.
    cut_off = any(
        isinstance(each, ConnectionError | EOFError | Py4JError)
        and not isinstance(each, Py4JJavaError)  # which is Java's own answer
        for each in chain
    )
    try:
        status = java.wait(_REAP_S if cut_off else 0)
    except subprocess.TimeoutExpired:
        return None
    return how_it_ended(status, log)


def _text(failure: BaseException) -> str:
    try:
        return str(failure)  # which asks Java for its stack
    except (Py4JError, OSError):
        return ""


def _chain(failure: BaseException | None) -> Iterator[BaseException]:
    while failure is not None:
        yield failure
        failure = failure.__cause__ or failure.__context__
