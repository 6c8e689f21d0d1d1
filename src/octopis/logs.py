"""What a log says for a while."""

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
