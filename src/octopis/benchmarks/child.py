"""A measuring process of its own, that never outlives the one who has started it."""

import signal
import subprocess

from octopis.errors import OperationFailed


def run_child(command: list[str], what: str) -> bytes:
    """Run a command and return what it prints; an interrupt ends it, whenever it comes.

    Raises OperationFailed, which says `what` failed, where it ends with another status than 0.
    """
    process: subprocess.Popen[bytes] | None = None
    interrupts: list[object] = []
    try:
        # Held back until the process is known: an interrupt while it starts would leave it behind.
        # Blocking the signal is not enough: a thread of numpy's takes it, and Python acts on it.
        before = signal.signal(signal.SIGINT, lambda *facts: interrupts.append(facts))
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own
        finally:
            signal.signal(signal.SIGINT, before)
        if interrupts:
            signal.raise_signal(signal.SIGINT)
        printed, _ = process.communicate()
    except BaseException:
        if process is not None:
            process.kill()
            process.communicate()
        raise
    if process.returncode:
        raise OperationFailed(f"{what} failed with status {process.returncode}")
    return printed
