"""What a gateway is told: where it listens, whom it lets in, and how much anybody may take.

`octopis gateway run --limit NAME=VALUE` sets any of the limits; their table in docs/gateway.md is
made of these fields.
"""

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, structs

from octopis.core.model.suggestion import did_you_mean
from octopis.core.toml import described
from octopis.errors import InvalidConfiguration
from octopis.overlay.gateway import DEFAULT_PORT

_Count = Annotated[int, Meta(ge=1, lt=10**12)]
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\sA-Z]+")
_Time = Annotated[float, Meta(gt=0, lt=1e9)]


class GatewayLimits(Struct, frozen=True):
    """Sizes, times, rates and counts that protect a gateway from whoever connects."""

    body_bytes: Annotated[_Count, Meta(description="bytes of a request's body, streams aside")] = (
        8 * 2**20
    )
    line_bytes: Annotated[_Count, Meta(description="bytes of a line of a stream")] = 2**20
    head_bytes: Annotated[_Count, Meta(description="bytes of a request's head")] = 2**16
    head_s: Annotated[
        _Time, Meta(description="a request's head must be there within it, after TLS as well")
    ] = 10.0
    body_s: Annotated[_Time, Meta(description="its body must be there within it")] = 60.0
    idle_s: Annotated[_Time, Meta(description="a stream that brings nothing for so long ends")] = (
        60.0
    )
    stall_s: Annotated[_Time, Meta(description="a reader that takes nothing for so long ends")] = (
        30.0
    )
    connections: Annotated[_Count, Meta(description="connections at a time")] = 4_000
    connections_per_host: Annotated[_Count, Meta(description="connections of one address")] = 1_000
    half_open: Annotated[_Count, Meta(description="TLS handshakes that go on, in all")] = 1_024
    half_open_per_host: Annotated[
        _Count, Meta(description="TLS handshakes of one address that go on")
    ] = 256
    handshakes_per_s: Annotated[
        _Count, Meta(description="TLS handshakes of one address, in a second")
    ] = 200
    members: Annotated[
        _Count, Meta(description="under security, tokens whose connections to the overlay are kept")
    ] = 500
    logins: Annotated[
        _Count, Meta(description="under security, tokens that brokers are asked about at a time")
    ] = 32
    logins_per_host: Annotated[
        _Count, Meta(description="the same for one address; where logins have failed lately, 2")
    ] = 8
    streams: Annotated[_Count, Meta(description="subscribers at a time: events and WebSockets")] = (
        1_000
    )
    streams_per_host: Annotated[_Count, Meta(description="subscribers of one address")] = 250
    streams_per_token: Annotated[
        _Count, Meta(description="subscribers with one token, under security")
    ] = 250
    filters_per_socket: Annotated[_Count, Meta(description="subscriptions of one WebSocket")] = 100
    rate_per_s: Annotated[
        _Count, Meta(description="requests, and messages of WebSockets, from one address")
    ] = 20_000
    reader_notifications: Annotated[
        _Count, Meta(description="notifications that wait for one slow reader")
    ] = 10_000
    reader_bytes: Annotated[_Count, Meta(description="bytes that wait for one slow reader")] = 2**20
    answer_s: Annotated[_Time, Meta(description="the overlay must answer within it")] = 10.0
    patience_s: Annotated[
        _Time, Meta(description="a request waits so long for an overlay that is away")
    ] = 2.0
    polls_per_s: Annotated[
        _Count, Meta(description="brokers that are asked how they are, in a second")
    ] = 250


class GatewayOptions(Struct, frozen=True, kw_only=True):
    """Where a gateway listens, and what it lets in."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    allow_origins: tuple[str, ...] = ()
    """Pages of these origins may use it from a browser, beside its own."""

    slow: str = "drop_oldest"
    """What becomes of a slow reader, as brokers' client_queues.policy has it."""

    certificate: str = ""
    """With which it speaks TLS; empty: it does not."""

    key: str = ""
    insecure: bool = False
    """Whether it may listen where other machines reach it although anybody could read or use it."""

    limits: GatewayLimits = GatewayLimits()


def parse_limits(words: Sequence[str]) -> GatewayLimits:
    """Return the limits that NAME=VALUE words set, or raise InvalidConfiguration."""
    given: dict[str, str] = {}
    known = GatewayLimits.__struct_fields__
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise InvalidConfiguration(f"--limit takes NAME=VALUE, not {word!r}{hint}")
        given[name] = value
    try:
        return msgspec.convert(given, GatewayLimits, strict=False)
    except msgspec.ValidationError as failure:
        raise InvalidConfiguration(f"--limit: {failure}") from failure


def parse_origins(words: Sequence[str]) -> tuple[str, ...]:
    """Return origins as browsers say them, or raise InvalidConfiguration for others."""
    for word in words:
        if word != "*" and not _ORIGIN.fullmatch(word):
            raise InvalidConfiguration(
                f"--allow-origin takes an origin as browsers say it, in small letters without a "
                f"path, as in https://page.example or http://localhost:3000, not {word!r}"
            )
    return tuple(words)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def limits_table() -> str:
    """Return all limits as docs/gateway.md shows them."""
    lines = ["| limit | | default |", "|---|---|---:|"]
    lines += [
        f"| `{each.name}` | {described(GatewayLimits, each.name)} | {_shown(each.default)} |"
        for each in structs.fields(GatewayLimits)
    ]
    return "\n".join(lines)
