"""How often a process of an overlay may die, and how long to wait before it is started anew."""

from collections import deque

DEATHS_MAX = 5
WITHIN_S = 60.0
_FIRST_S = 0.2
_MOST_S = 5.0


class Deaths:
    """The deaths of one process. Time comes in as an argument."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=DEATHS_MAX)

    def next_start_s(self, now: float) -> float | None:
        """Note a death; return after how many seconds to start anew, or None to give up.

        One that dies again and again will die once more: whatever ends it is still there.
        """
        if len(self._at) == DEATHS_MAX and now - self._at[0] < WITHIN_S:
            return None
        recent = sum(now - each < WITHIN_S for each in self._at)
        self._at.append(now)
        return min(_FIRST_S * float(2**recent), _MOST_S)
