"""Explains ways in a process of its own: that may take seconds of work, and nobody waits for it.

The process is started by the first question and answers one after another: a length, and so many
bytes of JSON, each way. Its standard input is a pipe that only the gateway holds, so it ends with
the gateway, however that ended. `Ways` is the gateway's side of that, `main` the other.
"""

import asyncio
import os
import sys
from functools import lru_cache
from typing import BinaryIO

import msgspec

from octopis.core.topology import SCOT, format_topology, parse_topology
from octopis.errors import OctopisError
from octopis.gateway.documents import RouteQuestion
from octopis.gateway.doors.asking import explain_ways
from octopis.gateway.doors.notations import checked
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem, ProblemDocument, problem_of
from octopis.gateway.settings import GatewayLimits

_WAITING_MOST = 8
"""Questions at a time, with those that wait for their turn."""

_NICER = 10
"""Brokers and gateways on the same machine go first."""

_LENGTH_BYTES = 4


class _Asked(msgspec.Struct, frozen=True):
    """A question, and the overlay that it is about as a document of a topology."""

    question: RouteQuestion
    topology: str


class _Answered(msgspec.Struct, frozen=True):
    """The answer as it goes out, or why there is none."""

    document: msgspec.Raw = msgspec.Raw(b"null")
    problem: ProblemDocument | None = None


class Ways:
    """Has ways explained, one question at a time."""

    def __init__(self, view: OverlayView, limits: GatewayLimits) -> None:
        self._view, self._limits = view, limits
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._process: asyncio.subprocess.Process | None = None

    async def explain(self, question: RouteQuestion) -> bytes:
        """Return a RouteAnswers as JSON, or raise Problem."""
        if self._waiting >= _WAITING_MOST:
            raise Problem(503, "too many ask for ways at a time: try again soon")
        checked(question.attributes)  # only what is right can be written again
        asked = msgspec.json.encode(_Asked(question, self._topology(question.topology)))
        self._waiting += 1
        try:
            async with self._turn:
                found = msgspec.json.decode(await self._answer(asked), type=_Answered)
        finally:
            self._waiting -= 1
        if found.problem is not None:
            raise Problem(found.problem.status, found.problem.detail)
        return bytes(found.document)

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    def _topology(self, name: str | None) -> str:
        """Return the topology of this overlay; empty where a question is about another one."""
        overlay = self._view.overlay
        if overlay is not None and name in {None, overlay.topology.name}:
            return format_topology(overlay.topology)
        if name is None:
            raise Problem(
                409,
                "this gateway knows only addresses of its overlay: name a topology in the question",
            )
        return ""

    async def _answer(self, asked: bytes) -> bytes:
        try:
            async with asyncio.timeout(self._limits.answer_s):
                return await self._exchange(asked)
        except TimeoutError:
            await self.close()
            raise Problem(
                413,
                f"that is not explained within {self._limits.answer_s:g} s: ask about fewer "
                "subscribers or algorithms, or use octopis route explain",
            ) from None
        except BaseException:  # what comes next would get the answer to this one
            await self.close()
            raise

    async def _exchange(self, asked: bytes) -> bytes:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                __name__,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the gateway alone
            )
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        try:
            to.write(_framed(asked))
            await to.drain()
            size = int.from_bytes(await back.readexactly(_LENGTH_BYTES), "big")
            return await back.readexactly(size)
        except (ConnectionError, asyncio.IncompleteReadError) as failure:
            raise Problem(503, "the process that explains ways has ended: try again") from failure


def _framed(text: bytes) -> bytes:
    return len(text).to_bytes(_LENGTH_BYTES, "big") + text


def main() -> None:
    """Answer questions until there are no more."""
    os.nice(_NICER)
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    while (asked := _next(questions)) is not None:
        answers.write(_framed(msgspec.json.encode(_answer_to(asked))))
        answers.flush()


def _next(questions: BinaryIO) -> _Asked | None:
    head = questions.read(_LENGTH_BYTES)
    if not head:
        return None
    return msgspec.json.decode(questions.read(int.from_bytes(head, "big")), type=_Asked)


def _answer_to(asked: _Asked) -> _Answered:
    try:
        scot = _scot(asked.topology) if asked.topology else None
        return _Answered(msgspec.Raw(msgspec.json.encode(explain_ways(scot, asked.question))))
    except Problem as problem:
        return _Answered(problem=problem.document)
    except OctopisError as failure:
        return _Answered(problem=problem_of(failure).document)


@lru_cache(maxsize=1)
def _scot(topology: str) -> SCOT:
    return parse_topology(topology, "this overlay").scot


if __name__ == "__main__":
    main()
