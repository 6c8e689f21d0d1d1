"""The processes that a command has started, also those that have left its process group."""

import subprocess
import time


def descendants(process: int) -> dict[int, str]:
    """Return the command lines of all processes below one, by their numbers."""
    listed = subprocess.run(
        ["ps", "-eww", "-o", "pid=,ppid=,stat=,args="],  # noqa: S607 - the system's own
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split(maxsplit=3) for line in listed.stdout.splitlines()]
    living = [(int(row[0]), int(row[1]), row[3]) for row in rows if not row[2].startswith("Z")]
    found: dict[int, str] = {}
    parents = {process}
    while parents:
        below = {pid: words for pid, parent, words in living if parent in parents}
        found |= below
        parents = set(below)
    return found


def still_running(before: dict[int, str], patience_s: float) -> dict[int, str]:
    """Wait for processes to end, and return those that have not."""
    deadline = time.monotonic() + patience_s
    while left := {pid: words for pid, words in before.items() if _words(pid) == words}:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return left


def _words(pid: int) -> str:
    """Return the command line of a process, to tell it from another that got its number."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "stat=,args=", "-p", str(pid)],  # noqa: S607 - the system's own
        capture_output=True,
        text=True,
        check=False,
    )
    state, _, words = listed.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else words.strip()
