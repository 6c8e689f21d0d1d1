"""Ctrl-C and its relatives: whichever comes, at whichever moment, everything ends in order."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stops_as_interrupts() -> Iterator[None]:
    """Let a polite stop from outside do what Ctrl-C does: contexts are left, processes end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what signals do, and only there they arrive
        return
    # One that is ignored stays so: that is what nohup asks for.
    taken = [number for number in _STOPS if signal.getsignal(number) == signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def interrupts_cancel() -> Iterator[None]:
    """Let Ctrl-C cancel the task that asyncio runs meanwhile, so that it ends what it started.

    The Spark session has a handler of its own, which would raise in the midst of the event loop.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's form
    if callable(signal.getsignal(signal.SIGINT)):
        signal.raise_signal(signal.SIGINT)
    else:  # a shell's background process does not hear Ctrl-C
        raise KeyboardInterrupt
