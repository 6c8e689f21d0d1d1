"""What our parts in Spark's own processes log, in the process of the user.

Spark lets its Python processes speak into the standard error of its Java, which a session of ours
keeps in a file. A line of ours begins with a mark there, and is logged here again.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = "octopis says: "
_WORKER = "SPARK_BUFFER_SIZE", "SPARK_REUSE_WORKER"
"""Variables that Spark sets for processes of its own."""

_LOOK_S = 0.2
_log = logging.getLogger("octopis.spark")


def mark_logs(name: str) -> None:
    """Let what a logger says begin with the mark, where this is a process of Spark's."""
    logger = logging.getLogger(name)
    if logger.handlers or not any(each in os.environ for each in _WORKER):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(MARK + "%(message)s"))
    logger.addHandler(handler)
    logger.propagate = False


@contextmanager
def said_again(file: Path) -> Iterator[None]:
    """Log marked lines of a file that others write, as they come."""
    is_over = threading.Event()
    teller = threading.Thread(target=_tell, args=(file, is_over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_over.set()
        teller.join()


def _tell(file: Path, is_over: threading.Event) -> None:
    rest = b""
    with file.open("rb") as written:
        while True:
            was_over = is_over.wait(_LOOK_S)
            *lines, rest = (rest + written.read()).split(b"\n")
            for line in lines:
                text = line.decode(errors="replace")
                if text.startswith(MARK):
                    _log.warning("%s", text.removeprefix(MARK))
            if was_over:
                return
