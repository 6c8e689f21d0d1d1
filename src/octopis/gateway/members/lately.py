"""An answer that is dear to get, and good for a moment: whoever asks meanwhile shares it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

_Answer = TypeVar("_Answer")
GOOD_S = 0.5


class Lately(Generic[_Answer]):
    """What was answered last. It is asked for once at a time, however many want it."""

    def __init__(self, ask: Callable[[], Awaitable[_Answer]]) -> None:
        self._ask = ask
        self._asking: asyncio.Task[_Answer] | None = None
        self._until = 0.0

    async def get(self, *, may_be_old: bool = True) -> _Answer:
        """Return the answer, of half a second ago at most if it may be old."""
        task = self._asking
        if task is None or (task.done() and not (may_be_old and self._is_good(task))):
            task = self._asking = asyncio.create_task(self._answer())
            task.add_done_callback(heard)
        return await asyncio.shield(task)

    def forget(self) -> None:
        """Ask anew the next time, also where an answer is on its way."""
        self._asking = None

    def _is_good(self, task: "asyncio.Task[_Answer]") -> bool:
        is_answer = not task.cancelled() and task.exception() is None
        return is_answer and asyncio.get_running_loop().time() < self._until

    async def _answer(self) -> _Answer:
        found = await self._ask()
        self._until = asyncio.get_running_loop().time() + GOOD_S
        return found


def heard(task: "asyncio.Task[Any]") -> None:
    """Let nobody complain that a failure was not heard of: whoever asks later is told."""
    if not task.cancelled():
        task.exception()
