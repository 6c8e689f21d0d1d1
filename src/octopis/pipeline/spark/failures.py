"""What Spark reports, as errors of our own tree: one sentence each."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from octopis.errors import OperationFailed

_OURS = re.compile(r"^octopis\.errors\.\w+: (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^((?!java|org|scala)[A-Za-z_][\w.]*(?:Error|Exception): .+)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)
_LENGTH_MAX = 300


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
