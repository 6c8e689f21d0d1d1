"""A measuring process of its own, that never outlives the one who has started it."""

import subprocess

from octopis.errors import OperationFailed
from octopis.signals import interrupts_wait


def run_child(command: list[str], what: str) -> bytes:
    """Run a command and return what it prints; an interrupt ends it, whenever it comes.

    Raises OperationFailed, which says `what` failed, where it ends with another status than 0.
    """
    with interrupts_wait() as let_them_come:
        # An interrupt while the process starts would leave it behind.
        process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own
        try:
            let_them_come()
            printed, _ = process.communicate()
        except BaseException:
            process.kill()
            process.communicate()
            raise
    if process.returncode:
        raise OperationFailed(f"{what} failed with status {process.returncode}")
    return printed
