"""What a log says: for a while, and one line for each thing."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_warnings(logger: str) -> Iterator[None]:
    """Let a logger say nothing below errors: what it would warn of is made on purpose."""
    log = logging.getLogger(logger)
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def one_line(text: str) -> str:
    """Return a text without line ends and control characters, which are shown as escapes.

    What strangers say is in logs and on terminals: none of it may look like a line of our own, or
    move a terminal's cursor.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


class OneLine(logging.Formatter):
    """Lets each message be one line, whatever is in it; a traceback stays as it is."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Return the line of a record."""
        record.message = one_line(record.message)
        return super().formatMessage(record)


def log_to_stderr(form: str, level: int) -> None:
    """Let this process log to standard error, one line for each message."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine(form))
    logging.basicConfig(handlers=[handler], level=level)
