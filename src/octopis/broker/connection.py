"""One TCP connection of a broker: frames in, bytes out, signs of life, an orderly end."""

import asyncio
import logging
import resource
import socket as sockets
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from octopis.broker.memory import Memory
from octopis.broker.settings import Limits
from octopis.core.wire.control import Goodbye, Ping, Refusal, encode_control
from octopis.core.wire.frames import Frame, FrameDecoder
from octopis.core.wire.greeting import HELLO_MAX, encode_refusal
from octopis.errors import LoginFailed, OctopisError, ProtocolError
from octopis.logs import one_line

WRITE_BYTES = 64 * 1024
"""So much is handed to the socket at once; the rest stays in our queues, where it is seen."""

_LINE_MAX = 2_000
"""Characters of a line in the log; what is beyond says no more."""

_SMALL_BYTES = 64 * 1024
"""Unfinished frames below this are not worth counting."""

_TLS = b"\x16\x03"
"""How TLS begins; as the length of a frame it would be far too much."""

_FILES_SPARE = 8
_CLOSE_S = 1.0
"""How long a peer has to take the last bytes."""


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
            said = message % facts  # with the words of strangers
            cut = f"{said[:_LINE_MAX]}..." if len(said) > _LINE_MAX else said
            self._log.warning("%s", one_line(cut))


class Peer(Protocol):
    """Who is at the other end, as far as is known: a stranger, a neighbour or a client."""

    name: str

    def frames_arrived(self, connection: "Connection", frames: list[Frame]) -> None:
        """Take frames in; a ProtocolError closes the connection."""

    def may_write(self, connection: "Connection") -> None:
        """Go on writing: the socket has room again."""

    def connection_lost(self, connection: "Connection", reason: str) -> None:
        """The connection is gone."""


class _Nobody:
    """The Peer of a connection that is gone: so that neither holds the other in memory."""

    def __init__(self, name: str) -> None:
        self.name = name

    def frames_arrived(self, connection: "Connection", frames: list[Frame]) -> None:
        """Nothing comes any more."""

    def may_write(self, connection: "Connection") -> None:
        """Nothing waits any more."""

    def connection_lost(self, connection: "Connection", reason: str) -> None:
        """It is lost already."""


class Connection(asyncio.Protocol):
    """A connection that begins with a greeting and then belongs to a peer.

    Until `greeted`, only short frames are taken of whoever has dialled, and only for a short time:
    `hello_s`, or `until` a time of the event loop. `check` raises LoginFailed where the other end's
    certificate is not the one that must be there: then nothing is said to it.
    """

    def __init__(  # noqa: PLR0913 - named options of one connection
        self,
        peer: Peer,
        limits: Limits,
        warnings: LogLimit,
        *,
        greets: bytes = b"",
        until: float | None = None,
        check: Callable[["Connection"], None] | None = None,
    ) -> None:
        self.peer = peer
        self._until = until
        self._check = check
        self._warnings = warnings
        self._limits = limits
        self._greets = greets
        # Whom we have dialled says hello and goes on at once: one read may bring both.
        self._frames = FrameDecoder(limits.frame_max if greets else HELLO_MAX)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reason = ""
        self._greeted = False
        self._is_holding = False
        self._is_paused = False
        self.memory: Memory | None = None
        """Where to say how much is held for it; None where nobody counts."""

        self.is_closing = False
        """Whether nothing more will be taken in."""

        self.is_ended = False
        """Whether one side has ended it, which is more than a break: nothing goes on after it."""

        self.is_resumable = False
        """Whether the other side may go on over another connection after a break."""

        self._heard_at = self._pinged_at = self._loop.time()
        self._keepalive_s, self._silence_s = limits.keepalive_s, limits.silence_s
        self._is_proved = True
        self._asked_at: float | None = None  # since when a ping is without answer
        self.is_writable = False
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.begun: asyncio.Future[None] = self._loop.create_future()
        """Done when the greeting is over, one way or the other."""

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: whoever has dialled says hello, the other waits for it."""
        transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_BYTES, low=WRITE_BYTES // 4)
        self.is_writable = True
        until = self._loop.time() + self._limits.hello_s if self._until is None else self._until
        self._timer = self._loop.call_at(until, self._no_greeting)
        if self._check is not None:
            try:
                self._check(self)
            except LoginFailed as failure:
                self._log_failure(failure)
                self.abort(str(failure))
                return
        if self._greets:
            transport.write(self._greets)
        self._look_at_files(transport.get_extra_info("socket").fileno())

    def _look_at_files(self, number: int) -> None:
        """Warn where the process may soon open no more files: then it cannot accept anybody."""
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if number >= most - _FILES_SPARE:  # the system gives the lowest that is free
            self._warnings.say(
                self._loop.time(),
                "open files",
                "this process has %d open files and may have %d: whoever connects now may be sent "
                "away without a word; raise the limit (ulimit -n)",
                number + 1,
                most,
            )

    def data_received(self, data: bytes) -> None:
        """Hand complete frames to the peer."""
        if self.is_closing:
            return
        try:
            if not self._greeted and data[:2] == _TLS:
                self._refuse_tls()
            frames = self._frames.receive_data(data)
            self._hold(self._frames.pending)
            if frames:
                self._heard_at = self._loop.time()
                self._is_proved = True
                self.peer.frames_arrived(self, frames)
        except ProtocolError as failure:
            self.fail(failure)

    def _refuse_tls(self) -> None:
        """Raise ProtocolError where TLS is spoken, and there is none here."""
        if not self.is_encrypted:
            raise ProtocolError(
                "it speaks TLS, and this overlay has no security: whoever connects here gives no "
                "credentials"
            )

    def _hold(self, size: int) -> None:
        """Say how much of an unfinished frame is held, where that is worth saying."""
        if self.memory is not None and (size > _SMALL_BYTES or self._is_holding):
            self._is_holding = size > _SMALL_BYTES
            self.memory.hold(self, size if self._is_holding else 0)
            self.memory.large_frames.look(self, size)

    def send_away(self, reason: str) -> None:
        """Close the connection: too much is held for it."""
        self._is_holding = False
        self._frames.clear()
        if self.memory is not None:
            self.memory.large_frames.leave(self)
        self.fail(ProtocolError(reason))

    def pause_writing(self) -> None:
        """Let the peer write no more: the socket's buffer is full."""
        self.is_writable = False

    def resume_writing(self) -> None:
        """Let the peer write again: the socket has room."""
        self.is_writable = not self.is_closing
        if self.is_writable:
            self.peer.may_write(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the peer that the connection is gone, and why."""
        self.is_writable = False
        if self._timer is not None:
            self._timer.cancel()
        reason = self._reason or (f"{exc}" if exc else "the other side has closed the connection")
        self._reason, self.is_closing = reason, True
        for each in (self.closed, self.begun):
            if not each.done():
                each.set_result(None)
        peer, self.peer = self.peer, _Nobody(self.peer.name)
        peer.connection_lost(self, reason)
        self._frames.clear()
        self._hold(0)

    # What peers call

    @property
    def address(self) -> str:
        """Where the other end is."""
        place = None if self._transport is None else self._transport.get_extra_info("peername")
        return f"{place[0]}:{place[1]}" if place else "an unknown place"

    @property
    def is_made(self) -> bool:
        """Whether it has stood at all."""
        return self._transport is not None

    @property
    def is_greeted(self) -> bool:
        """Whether the greeting came to its end, and the other end was let in."""
        return self._greeted

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is spoken on it."""
        return self._transport is not None and bool(self._transport.get_extra_info("sslcontext"))

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        """The other end's certificate, verified; None where it has shown none."""
        assert self._transport is not None
        found: Mapping[str, Any] | None = self._transport.get_extra_info("peercert")
        return found or None

    def set_buffers(self, size: int) -> None:
        """Bound what the system itself may hold in each direction."""
        assert self._transport is not None
        own = self._transport.get_extra_info("socket")
        for option in (sockets.SO_SNDBUF, sockets.SO_RCVBUF):
            own.setsockopt(sockets.SOL_SOCKET, option, size)

    def greeted(self, peer: Peer, keepalive_s: float, silence_s: float) -> None:
        """Note that the greeting is over: from here on the connection belongs to `peer`.

        It is asked for a sign of life every `keepalive_s`, and has `silence_s` to give one.
        """
        self.peer = peer
        self._keepalive_s, self._silence_s = keepalive_s, silence_s
        self._greeted = True
        if not self.begun.done():
            self.begun.set_result(None)
        self._frames.frame_max = self._limits.frame_max
        if self._timer is not None:
            self._timer.cancel()

    def write(self, data: bytes) -> None:
        """Send bytes; whoever has much to send looks at `is_writable` before."""
        if self._transport is not None and not self.is_closing:
            self._transport.write(data)

    def pause_reading(self, *, on: bool) -> None:
        """Read no more for now, or read again."""
        if self._transport is None or self.is_closing or on == self._is_paused:
            return
        self._is_paused = on
        if on:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def fail(self, failure: OctopisError) -> None:
        """Close the connection because of what the other side did, and say so in the log."""
        self._log_failure(failure)
        if self._greeted:
            self.close(str(failure))
            return
        if not self._greets:  # whoever has dialled does not refuse: it is not asked for anything
            self.write(encode_refusal(Refusal.of(failure)))
        self._end(str(failure))

    def close(self, reason: str) -> None:
        """Say goodbye and close the connection."""
        self.write(encode_control(Goodbye(reason)))
        self._end(reason)

    def abort(self, reason: str) -> None:
        """Close the connection at once."""
        self._reason, self.is_closing = self._reason or reason, True
        if self._transport is not None:
            self._transport.abort()

    def look_after(self, now: float) -> None:
        """Ask for a sign of life now and then, and close what gives none."""
        if not self._greeted or self.is_closing:
            return
        if self.memory is not None and self.memory.large_frames.is_waiting(self):
            self.wait_anew(now)
            return
        if self._asked_at is not None and self._heard_at >= self._asked_at:
            self._asked_at = None
        if self._asked_at is not None and now - self._asked_at > self._silence_s:
            unfinished = self._frames.pending
            inside = f", {unfinished:,} bytes into a frame" if unfinished else ""
            silence = ProtocolError(f"nothing came for {now - self._heard_at:.0f} s{inside}")
            if self.is_resumable:  # a line may be cut: without goodbye
                self._log_failure(silence)
                self.abort(str(silence))
            else:
                self.fail(silence)
        elif now - self._pinged_at >= self._keepalive_s:
            self._pinged_at = now
            self._asked_at = self._asked_at or now
            self.write(encode_control(Ping()))

    def wait_anew(self, now: float) -> None:
        """Let whoever was asked for a sign of life have all the time to give it from now on."""
        if self._asked_at is not None:
            self._asked_at = now

    def prove_alive(self, within_s: float, then: Callable[[bool], None]) -> None:
        """Ask for a sign of life, and tell `then` whether one came in time."""
        self._is_proved = False
        self.write(encode_control(Ping()))
        self._loop.call_later(within_s, lambda: then(self._is_proved and not self.is_closing))

    def _log_failure(self, failure: OctopisError) -> None:
        self._warnings.say(
            self._loop.time(),
            "bad peers",
            "closing the connection of %s at %s: %s",
            self.peer.name,
            self.address,
            failure,
        )

    def _end(self, reason: str) -> None:
        self.is_ended = True
        if not self.is_closing:
            self._reason, self.is_closing = reason, True
            self.is_writable = False
            if self._transport is not None:
                self._transport.close()
                self._loop.call_later(_CLOSE_S, self._transport.abort)

    def _no_greeting(self) -> None:
        if not self.is_closing:
            self.fail(ProtocolError(f"there was no hello within {self._limits.hello_s:g} s"))
