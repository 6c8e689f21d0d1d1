"""What must hold for every input of a target, and how an input that breaks it is told.

A check takes the bytes of one input and does all that the product would do with them. It lets
nothing out: not one of the errors that are allowed there, and anything else is a fault. An input
also has to be dealt with in LIMIT_S of the process's CPU time, which a busy machine does not bend;
what takes longer is tried again, as a collector of garbage may have come in between.
"""

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from msgspec import Struct

from octopis.errors import OctopisError

LIMIT_S = 0.010
TRIES = 5

Check = Callable[[bytes], None]
_Value = TypeVar("_Value")


class Broken(AssertionError):
    """A law does not hold for an input."""


class Slow(Broken):
    """A step takes too long."""


class Fault(Struct, frozen=True):
    """An input that breaks a law."""

    target: str
    what: str
    data: bytes


def hold(is_so: bool, law: str) -> None:
    """Raise Broken where a law does not hold."""
    if not is_so:
        raise Broken(law)


@contextmanager
def ours() -> Iterator[None]:
    """Let no error of the product pass for an allowed one: what is read here, we have written."""
    try:
        yield
    except OctopisError as failure:
        raise Broken(f"what we have written cannot be read: {failure}") from failure


def same_again(
    first: _Value, encode: Callable[[_Value], bytes], decode: Callable[[bytes], _Value]
) -> None:
    """Raise Broken unless what was decoded is the same once it was encoded and decoded again.

    Compared as bytes, since a number that is none (NaN) is not equal to itself.
    """
    encoded = encode(first)
    with ours():
        again = encode(decode(encoded))
    hold(again == encoded, "what was decoded comes back as something else")


def soon(step: Callable[[], _Value], what: str) -> _Value:
    """Return what a step of a check comes to, which has all of the time that an input has.

    For checks that do with one input what the product does at several times. Raises Slow.
    """
    start = time.process_time()
    found = step()
    seconds = time.process_time() - start
    for _ in range(TRIES - 1):
        if seconds <= LIMIT_S:
            return found
        start = time.process_time()
        step()
        seconds = min(seconds, time.process_time() - start)
    if seconds > LIMIT_S:
        raise Slow(f"{what} takes {1000 * seconds:.1f} ms")
    return found


def fault_of(check: Check, data: bytes, limit_s: float = LIMIT_S) -> str | None:
    """Return which law an input breaks, None where all hold."""
    try:
        seconds = least_s(check, data, limit_s)
    except Slow as failure:
        return f"it takes too long: {failure}"
    except Exception as failure:  # noqa: BLE001 - whatever it is, it is what is looked for
        return _told(failure)
    return f"it takes {1000 * seconds:.1f} ms" if seconds > limit_s else None


def least_s(check: Check, data: bytes, enough_s: float = 0.0) -> float:
    """Return how long an input takes, the least of some tries; the first that is soon enough."""
    least = _seconds(check, data)
    for _ in range(TRIES - 1):
        if least <= enough_s:
            break
        least = min(least, _seconds(check, data))
    return least


def _seconds(check: Check, data: bytes) -> float:
    start = time.process_time()
    check(data)
    return time.process_time() - start


def _told(failure: Exception) -> str:
    """Return the error and where it was raised: faults of one place are one fault."""
    frames = traceback.extract_tb(failure.__traceback__)
    place = f"{frames[-1].name}:{frames[-1].lineno}" if frames else "nowhere"
    return f"{type(failure).__name__} in {place}: {str(failure)[:200]}"
