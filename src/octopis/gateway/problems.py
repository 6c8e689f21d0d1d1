"""What went wrong, as application/problem+json (RFC 9457): what, where, and what to do."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from octopis.errors import (
    ConnectionFailed,
    InvalidFilter,
    InvalidInput,
    LoginFailed,
    NotPermitted,
    NotSettled,
    OctopisError,
    StoreFull,
)

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading JSON raises where it is none, is not what was asked for, or is nested too deeply."""

CONTENT_TYPE = "application/problem+json"
RETRY_S = 1
_BYTE = re.compile(r"\(byte (\d+)\)")


class ProblemDocument(msgspec.Struct, omit_defaults=True):
    """What went wrong. `position` counts characters from 1 (of a filter), or bytes (of JSON)."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
    position: int | None = None
    line: int | None = None
    """The line of a stream, from 1."""

    index: int | None = None
    """The place in a batch, from 0."""

    accepted: int | None = None
    """How many notifications before that were accepted."""


class Problem(Exception):
    """A request that cannot be answered as was asked."""

    def __init__(  # noqa: PLR0913 - the members of the document
        self,
        status: int,
        detail: str,
        *,
        position: int | None = None,
        line: int | None = None,
        index: int | None = None,
        accepted: int | None = None,
        closes: bool = False,
    ) -> None:
        super().__init__(detail)
        title = HTTPStatus(status).phrase
        self.document = ProblemDocument(
            title, status, detail, "about:blank", position, line, index, accepted
        )
        self.closes = closes
        """Whether the connection ends with the answer: what comes on it is not read."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.document.status

    def headers(self) -> dict[str, str]:
        """Return the headers of the answer."""
        found = {}
        if self.status in {429, 503}:
            found["retry-after"] = str(RETRY_S)
        if self.status == HTTPStatus.UNAUTHORIZED:
            found["www-authenticate"] = 'Bearer realm="octopis"'
        if self.closes:
            found["connection"] = "close"
        return found

    def response(self) -> Response:
        """Return the answer."""
        body = msgspec.json.encode(self.document)
        return Response(body, self.status, self.headers(), CONTENT_TYPE)


def problem_of(failure: OctopisError) -> Problem:
    """Return what a client hears of an error."""
    position = failure.column if isinstance(failure, InvalidFilter) else None
    return Problem(_status(failure), str(failure), position=position)


def away(reason: str) -> Problem:
    """Return the answer while no broker can be reached."""
    return Problem(503, f"the overlay is away: {reason}")


@asynccontextmanager
async def answered_within(seconds: float) -> AsyncIterator[None]:
    """Have the overlay answer meanwhile; raise Problem where it takes longer than that."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise away(f"it has not answered within {seconds:g} s") from None


def bad_json(failure: Exception, what: str = "the body") -> Problem:
    """Return what is wrong with JSON, with the byte at which it goes wrong where that is known."""
    found = _BYTE.search(str(failure))
    return Problem(400, f"{what}: {failure}", position=None if found is None else int(found[1]))


def _status(failure: OctopisError) -> int:
    for kind, status in (
        (LoginFailed, 401),
        (NotPermitted, 403),
        (InvalidInput, 400),
        (ConnectionFailed, 503),
        (StoreFull, 503),
        (NotSettled, 504),
    ):
        if isinstance(failure, kind):
            return status
    return 502
