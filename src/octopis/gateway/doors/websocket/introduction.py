"""Who opens a WebSocket, where the head does not say it: browsers cannot write into that."""

import asyncio

import msgspec
from msgspec import Struct
from starlette.websockets import WebSocket, WebSocketDisconnect

from octopis.gateway.context import Context
from octopis.gateway.problems import NOT_JSON, Problem

_FIRST = 'this overlay has security: the first message is {"token": "..."}'


class Introduction(Struct, forbid_unknown_fields=True):
    """The first message under security, of who has not said in the head who it is."""

    token: str


_decode_token = msgspec.json.Decoder(Introduction).decode


async def said_token(context: Context, websocket: WebSocket) -> str:
    """Return the token in the first message of who has none in the head, or raise Problem."""
    limit_s = context.limits.head_s
    try:
        async with asyncio.timeout(limit_s):
            message = await websocket.receive()
    except TimeoutError:
        context.counts.ended["head_s"] += 1
        raise Problem(401, f"nobody has said who this is within {limit_s:g} s") from None
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect
    try:
        return _decode_token(message.get("text") or message.get("bytes") or b"").token
    except NOT_JSON:  # what is wrong with it may quote a secret
        raise Problem(401, _FIRST) from None
