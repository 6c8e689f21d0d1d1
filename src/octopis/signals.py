"""What Ctrl-C and its relatives do for a while; afterwards they do what they did before.

Only the main thread may say what a signal does, and only there it arrives: in other threads all of
this leaves signals alone. Programs with an event loop of their own ask the loop instead
(`add_signal_handler`), which calls them between two steps and forgets them when it ends.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

_STOPS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handled(number: int, handler: Any) -> Iterator[Callable[[], None]]:
    """Let `handler` act on a signal meanwhile.

    What is given says so anew, for when a library has put a handler of its own in our place.
    """
    before = signal.getsignal(number)
    _set(number, handler)
    try:
        yield lambda: _set(number, handler)
    finally:
        _set(number, before)


@contextmanager
def interrupts_cancel() -> Iterator[None]:
    """Let Ctrl-C cancel the task that asyncio runs meanwhile, so that it ends what it started.

    Another handler, such as that of a Spark session, would raise in the midst of the event loop.
    """
    with handled(signal.SIGINT, signal.default_int_handler):
        yield


@contextmanager
def first_interrupt_calls(act: Callable[[], None]) -> Iterator[None]:
    """Let the first Ctrl-C call `act`; a second one does what it did before."""
    before = signal.getsignal(signal.SIGINT)

    def heard(_number: int, _frame: FrameType | None) -> None:
        _set(signal.SIGINT, before)
        act()

    with handled(signal.SIGINT, heard):
        yield


@contextmanager
def interrupts_wait() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C wait until what is being started is there to be ended; pressed twice, it does not.

    What is given lets interrupts come again, at once the one that waited. Blocking the signal would
    not be enough: a thread of numpy's takes it, and Python acts on it.
    """
    before = signal.getsignal(signal.SIGINT)
    waiting: list[object] = []

    def heard(*facts: object) -> None:
        if waiting:
            raise KeyboardInterrupt
        waiting.append(facts)

    def let_them_come() -> None:
        _set(signal.SIGINT, before)
        if waiting:
            _interrupt()

    with handled(signal.SIGINT, heard):
        yield let_them_come


@contextmanager
def stops_as_interrupts() -> Iterator[None]:
    """Let a polite stop from outside do what Ctrl-C does: contexts are left, processes end."""
    with ExitStack() as stack:
        for number in _STOPS:
            # One that is ignored stays so: that is what nohup asks for.
            if signal.getsignal(number) == signal.SIG_DFL:
                stack.enter_context(handled(number, _interrupt))
        yield


def _interrupt(*_facts: object) -> None:
    """Do what Ctrl-C does now."""
    if callable(signal.getsignal(signal.SIGINT)):
        signal.raise_signal(signal.SIGINT)
    else:  # a shell's background process does not hear Ctrl-C
        raise KeyboardInterrupt


def _set(number: int, handler: Any) -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, handler)
