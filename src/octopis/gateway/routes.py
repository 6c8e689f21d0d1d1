"""Which address answers what: every question that is not about publishing or following."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket

from octopis.client.address import Address
from octopis.errors import OctopisError
from octopis.gateway.bodies import query_of, read_body
from octopis.gateway.context import Context
from octopis.gateway.description.docs_page import docs_page
from octopis.gateway.description.openapi import document
from octopis.gateway.documents import (
    Acknowledgement,
    ExplainQuestion,
    FilterQuestion,
    OverlayStatus,
    RouteQuestion,
)
from octopis.gateway.doors import asking, durable
from octopis.gateway.doors.ways import Ways
from octopis.gateway.doors.websocket import sockets
from octopis.gateway.live.poller import Poller
from octopis.gateway.live.stream import LiveStream
from octopis.gateway.members.member import Member
from octopis.gateway.overlay_view import plan_of
from octopis.gateway.page_files import HEADERS, PageFiles
from octopis.gateway.problems import NOT_JSON, Problem, bad_json, problem_of
from octopis.overlay.status import totals

Handler = Callable[[Request], Awaitable[Response]]
INTERNAL = "internal error: the gateway's log has more"


def routes_of(
    context: Context, poller: Poller, ways: Ways, registry: CollectorRegistry, page: Path
) -> list[BaseRoute]:
    """Return all routes."""
    questions = Questions(context, poller, ways, registry, page)
    return [
        Route("/", questions.page),
        Route("/favicon.ico", questions.favicon),
        Route("/openapi.json", questions.openapi),
        Route("/docs", questions.docs),
        Route("/metrics", questions.metrics),
        Route("/overlay", questions.overlay),
        Route("/overlay/status", questions.status),
        Route("/overlay/live", questions.live),
        Route("/overlay/brokers/{name:path}", questions.broker),
        Route("/filters/check", questions.check_filter, methods=["POST"]),
        Route("/filters/explain", questions.explain_filter, methods=["POST"]),
        Route("/routes/explain", questions.explain_ways, methods=["POST"]),
        Route("/durable/{name:path}/ack", questions.acknowledge, methods=["POST"]),
        Route("/durable/{name:path}", questions.pull),
        WebSocketRoute("/ws", questions.websocket),
        Mount("/static", PageFiles(directory=page)),
        Route("/notifications", elsewhere, methods=["GET", "POST"]),
    ]


class Questions:
    """The answers that the routes give."""

    def __init__(
        self, context: Context, poller: Poller, ways: Ways, registry: CollectorRegistry, page: Path
    ) -> None:
        self._context, self._poller, self._ways = context, poller, ways
        self._registry = registry
        self._page = page
        self._plan = plan_of(context.view)

    # The page and what describes the gateway

    async def page(self, _: Request) -> Response:
        """The dashboard."""
        return FileResponse(self._page / "index.html", headers=HEADERS)

    async def favicon(self, _: Request) -> Response:
        """The picture of the page's tab."""
        return FileResponse(self._page / "favicon.svg", media_type="image/svg+xml")

    async def openapi(self, _: Request) -> Response:
        """The OpenAPI description."""
        return as_json(document())

    async def docs(self, _: Request) -> Response:
        """The description, to be read."""
        return Response(docs_page(), media_type="text/html; charset=utf-8")

    async def metrics(self, request: Request) -> Response:
        """What Prometheus asks for: on this machine anybody's, elsewhere a role's with status."""
        if not Address(self._context.options.host, 0).is_loopback:
            async with self._context.onlooker(request.scope):
                pass
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self._registry), headers={"content-type": content_type})

    # The overlay

    async def overlay(self, request: Request) -> Response:
        """Its plan."""
        async with self._context.onlooker(request.scope):
            pass
        if self._plan is None:
            raise Problem(
                404,
                "this gateway knows only addresses: start it with --overlay or --config for the "
                "overlay's plan",
            )
        return as_json(self._plan)

    async def status(self, request: Request) -> Response:
        """How all brokers are now."""
        view = self._context.view
        async with self._context.onlooker(request.scope) as member:
            found = await member.status()
        return as_json(OverlayStatus(view.name, totals(found), found))

    async def live(self, _: Request) -> Response:
        """How it is, twice a second."""
        return LiveStream(self._context, self._poller)

    async def broker(self, request: Request) -> Response:
        """How one broker is."""
        async with self._context.onlooker(request.scope) as member:
            return await self._broker(request.path_params["name"], member)

    async def _broker(self, name: str, member: Member) -> Response:
        if name not in self._context.view.addresses:
            known = ", ".join(list(self._context.view.addresses)[:20])
            raise Problem(404, f"there is no broker {name!r}; there are {known}")
        found = (await member.status(name))[name]
        if "error" in found:
            raise Problem(503, str(found["error"]))
        return as_json(found)

    # Filters and ways

    async def check_filter(self, request: Request) -> Response:
        """What a filter comes to."""
        await self._known(request)
        return as_json(asking.check_filter(await self._read(request, FilterQuestion)))

    async def explain_filter(self, request: Request) -> Response:
        """Why it matches or not."""
        await self._known(request)
        return as_json(asking.explain_filter(await self._read(request, ExplainQuestion)))

    async def explain_ways(self, request: Request) -> Response:
        """Where a notification goes: it tells of the overlay's plan."""
        async with self._context.onlooker(request.scope):
            pass
        question = await self._read(request, RouteQuestion)
        return Response(await self._ways.explain(question), media_type="application/json")

    # Durable subscriptions, and sockets

    async def pull(self, request: Request) -> Response:
        """What comes next of a durable subscription."""
        return as_json(
            await durable.pull(self._context, request.scope, request.path_params["name"])
        )

    async def acknowledge(self, request: Request) -> Response:
        """It is done with."""
        await self._known(request)
        asked = await self._read(request, Acknowledgement)
        name = request.path_params["name"]
        return as_json(await durable.acknowledge(self._context, request.scope, name, asked))

    async def websocket(self, websocket: WebSocket) -> None:
        """A socket."""
        await sockets.serve(self._context, websocket)

    async def _known(self, request: Request) -> None:
        """Raise Problem unless whoever asks has said well who it is."""
        async with self._context.member(request.scope):
            pass

    async def _read(self, request: Request, kind: type[Any]) -> Any:
        query_of(request.scope)  # it must be readable, though nothing is asked for in it
        ended = self._context.counts.ended
        body = await read_body(request.scope, request.receive, self._context.limits, ended)
        try:
            return msgspec.json.decode(body, type=kind)
        except NOT_JSON as failure:
            raise bad_json(failure) from failure


def as_json(found: Any) -> Response:
    """Return an answer in JSON."""
    return Response(msgspec.json.encode(found), media_type="application/json")


async def elsewhere(_: Request) -> Response:
    """Refuse what is left of an address whose GET and POST never come here."""
    raise HTTPException(405)


async def as_problem(request: Request, failure: Exception) -> Response:
    """Return what a client hears of whatever went wrong."""
    if isinstance(failure, Problem):
        return failure.response()
    if isinstance(failure, OctopisError):
        return problem_of(failure).response()
    if isinstance(failure, HTTPException):  # Starlette's own refusals
        if failure.status_code == HTTPStatus.NOT_FOUND:
            reason = f"there is nothing at {request.url.path}: see /docs"
            return Problem(failure.status_code, reason).response()
        return Problem(failure.status_code, str(failure.detail)).response()
    return Problem(500, INTERNAL).response()


HANDLERS: dict[Any, Any] = dict.fromkeys(
    (Problem, OctopisError, HTTPException, Exception), as_problem
)
"""For every exception that a route may raise."""
