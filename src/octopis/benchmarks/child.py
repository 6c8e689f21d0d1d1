"""A measuring process of its own, that never outlives the one who has started it."""

import signal
import subprocess

from octopis.errors import OperationFailed


def run_child(command: list[str], what: str) -> bytes:
    """Run a command and return what it prints; an interrupt ends it, whenever it comes.

    Raises OperationFailed, which says `what` failed, where it ends with another status than 0.
    """
    # Held back until the process is known: an interrupt while it starts would leave it behind.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own
    except BaseException:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        raise
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        printed, _ = process.communicate()
    except BaseException:
        process.kill()
        process.communicate()
        raise
    if process.returncode:
        raise OperationFailed(f"{what} failed with status {process.returncode}")
    return printed
