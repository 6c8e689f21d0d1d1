"""The gateway as one ASGI application: what is quick first, and Starlette's routes for the rest."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.websockets import WebSocket

from octopis.errors import OctopisError
from octopis.gateway.bodies import Gone, Message, Receive, Scope, Send
from octopis.gateway.context import Context
from octopis.gateway.counts import Counts, registry_of
from octopis.gateway.doors.events import subscribe
from octopis.gateway.doors.publish import publish
from octopis.gateway.doors.ways import Ways
from octopis.gateway.live.poller import Poller
from octopis.gateway.members.membership import Members
from octopis.gateway.origins import Origins
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem, problem_of
from octopis.gateway.routes import HANDLERS, INTERNAL, routes_of
from octopis.gateway.settings import GatewayOptions

PAGE = Path(__file__).with_name("page")
_QUICK = {("POST", "/notifications"): publish, ("GET", "/notifications"): subscribe}
_STATUS = "octopis.status"

App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Gateway:
    """Doors to one overlay."""

    def __init__(self, view: OverlayView, options: GatewayOptions) -> None:
        self.counts = Counts()
        self.context = Context(view, options, self.counts, Members(view, options.limits))
        self.poller = Poller(view, options.limits.polls_per_s)
        self.ways = Ways(view, options.limits)
        self._origins = Origins(options, is_secure=self.context.is_secure)
        self.connections: Callable[[], int] = lambda: 0
        """How many connections there are: the server says."""

        registry = registry_of(self.counts, lambda: self.connections())  # noqa: PLW0108 - set later
        self._routes = Starlette(
            routes=routes_of(self.context, self.poller, self.ways, registry, PAGE),
            exception_handlers=HANDLERS,
        )
        self._app: App = self._answered
        if options.allow_origins:
            self._app = CORSMiddleware(
                self._answered,
                allow_origins=options.allow_origins,
                allow_methods=["GET", "POST"],
                allow_headers=["*"],
            )

    def start(self) -> None:
        """Dial the overlay, and look how it is."""
        self.poller.start()
        if not self.context.is_secure:
            self.context.members.anybody()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request or a WebSocket."""
        if scope["type"] == "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
        except Problem as problem:
            await WebSocket(scope, receive, send).send_denial_response(problem.response())
        else:
            await self._routes(scope, receive, send)

    def end_streams(self) -> None:
        """End all readers' streams; what comes now is refused."""
        self.context.is_ending = True
        for reader in list(self.context.readers):
            reader.end("the gateway is stopping: connect again")

    async def close(self) -> None:
        """Leave the overlay."""
        await self.poller.close()
        await self.ways.close()
        await self.context.members.close()

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever goes wrong, and count it."""
        door = scope["path"] if (scope["method"], scope["path"]) in _QUICK else "other"

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                scope[_STATUS] = message["status"]
            await send(message)

        try:
            self._check(scope)
            quick = _QUICK.get((scope["method"], scope["path"]))
            if quick is not None:
                await quick(self.context, scope, receive, counted)
            else:
                await self._routes(scope, receive, counted)
        except Gone:
            scope[_STATUS] = 499
            await _nothing(send)
        except Problem as problem:
            await _answer(problem, scope, receive, counted)
        except OctopisError as failure:
            await _answer(problem_of(failure), scope, receive, counted)
        except Exception:
            if _STATUS not in scope:  # else Starlette has said so
                await _answer(Problem(500, INTERNAL), scope, receive, counted)
            raise  # the server writes it to the log
        finally:
            self.counts.requests[door, scope.get(_STATUS, 499)] += 1

    def _check(self, scope: Scope) -> None:
        """Raise Problem for who asks too often, and for pages of other origins."""
        if not self.context.rates.take(scope):
            self.counts.ended["rate_per_s"] += 1
            raise Problem(429, "too many requests in a second: slow down")
        self._origins.check(scope)


async def _answer(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    assert _STATUS not in scope, "an answer that has begun says itself what went wrong"
    await problem.response()(scope, receive, send)


async def _nothing(send: Send) -> None:
    """End an exchange whose other side has gone: nobody reads this."""
    status = HTTPStatus.BAD_REQUEST
    headers: list[Any] = [(b"content-length", b"0"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
