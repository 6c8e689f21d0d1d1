"""Keeps whoever connects from flooding the log."""

import logging


class LogLimit:
    """Lets so many lines a second of each kind through, and says how many it held back."""

    def __init__(self, log: logging.Logger, lines_per_s: int = 5) -> None:
        self._log = log
        self._lines_per_s = lines_per_s
        self._second: dict[str, int] = {}
        self._lines: dict[str, int] = {}

    def say(self, now: float, kind: str, message: str, *facts: object) -> None:
        """Log a warning of a kind, unless there were too many of it in this second."""
        second = int(now)
        if self._second.get(kind) != second:
            held_back = self._lines.get(kind, 0) - self._lines_per_s
            if held_back > 0:
                self._log.warning("%s: %d more lines like the last were left out", kind, held_back)
            self._second[kind] = second
            self._lines[kind] = 0
        self._lines[kind] += 1
        if self._lines[kind] <= self._lines_per_s:
            self._log.warning(message, *facts)
