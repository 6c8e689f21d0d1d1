"""The audit log: one line of JSON for each thing that happened, chained so that changes show.

    {"number":1,"time":1760000000.5,"event":"login","user":"al","previous":"00..","digest":"5e.."}
    {"number":2,"time":1760000007.1,"event":"refused",  ...     "previous":"5e..","digest":"9a.."}

`digest` is the SHA-256 of the line without it, up to the comma before; `previous` is the digest of
the line before. So a line that is changed, removed, put in or moved is found. Two things are not:
lines cut off at the end, whole ones, leave a chain that is right; and who may write the file can
make the whole chain anew. For both, note a digest elsewhere now and then, and have it looked for.

A line that was being written when the machine or the process died has no end: it is torn, which is
no sign of tampering. The log that goes on after it cuts it off, and says so in its next line.
"""

import fcntl
import hashlib
import json
import logging
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from octopis.errors import InvalidConfiguration
from octopis.security.bounds.buckets import Buckets
from octopis.security.bounds.failures import place_of

LINES_PER_S = 100
"""Of one kind of event about one user or address, for ever. What is beyond is counted, and the
count is written. Nobody's lines take the place of another's."""

LINES_AT_ONCE = 2_000
"""As many of them as come in one burst: all clients of one user may log in anew at one time."""

_PARTIES_MAX = 10_000

LINE_MAX = 2**20
TEXT_MAX = 1_000
"""Characters of one fact; the rest is cut off."""

_ITEMS_MAX = 16
_BEGINNING = "0" * 64
_OWN = frozenset(("number", "time", "event", "previous", "digest"))
_SEAL = re.compile(rb'(\{.*),"digest":"([0-9a-f]{64})"\}', re.DOTALL)
_log = logging.getLogger(__name__)


class _Link(Struct):
    """What the chain needs of a line."""

    number: int
    previous: str


class AuditLog:
    """Writes to the end of a file, which is made where it is not there.

    Raises InvalidConfiguration where it cannot be written, another process writes it, or its last
    line is not right. Later failures to write are counted and told, and stop nobody.
    """

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.time,
        lines_per_s: int = LINES_PER_S,
        lines_at_once: int = LINES_AT_ONCE,
    ) -> None:
        self._path = path
        self._clock = clock
        self._second = 0
        self._lines: Buckets[tuple[str, str]] = Buckets(lines_per_s, lines_at_once, _PARTIES_MAX)
        self._omitted: Counter[str] = Counter()
        self.failure = ""
        """Why the latest line could not be written; empty where it was."""

        self._file = _opened(path)
        try:
            self._number, self._digest, self._size, torn = _end(path, self._file)
            if torn:
                _cut(path, self._file, self._size)
                self.write("torn_line", bytes=len(torn), text=torn.decode("ascii", "replace"))
        except BaseException:
            os.close(self._file)
            raise

    @property
    def digest(self) -> str:
        """The digest of the last line: noted elsewhere, it vouches for all before it."""
        return self._digest

    def write(self, event: str, **facts: object) -> None:
        """Write a line: what happened, and facts, which are texts, numbers or lists of these."""
        assert not _OWN & facts.keys(), "the log has these itself"
        self.tick()
        share, now = (event, _whose(facts)), self._clock()
        if not self._lines.has(share, now):
            self._omitted[event] += 1
            return
        self._lines.take(share, now)
        if not self._append(event, {name: _plain(value) for name, value in facts.items()}):
            self._omitted[event] += 1

    def tick(self) -> None:
        """Write how much was omitted, once that second is over. Call it now and then."""
        second = int(self._clock())
        if second != self._second:
            self._second = second
            self._tell_omitted()

    def close(self) -> None:
        """Write what is left to say, and close the file."""
        self._tell_omitted()
        os.close(self._file)

    def _tell_omitted(self) -> None:
        if self._omitted and self._append("omitted", {"lines": dict(self._omitted)}):
            self._omitted.clear()

    def _append(self, event: str, facts: dict[str, object]) -> bool:
        """Write a line, and tell whether that went well: a disk may be full."""
        number = self._number + 1
        said: dict[str, object] = {
            "number": number,
            "time": round(self._clock(), 6),
            "event": event,
        }
        line, digest = _sealed({**said, **facts, "previous": self._digest})
        try:
            if self.failure:  # no half of a line before this one
                os.ftruncate(self._file, self._size)
            _write(self._file, line)
        except OSError as failure:
            if not self.failure:
                _log.error("the audit log %s cannot be written: %s", self._path, failure.strerror)
            self.failure = failure.strerror or str(failure)
            return False
        self.failure = ""
        self._number, self._digest, self._size = number, digest, self._size + len(line)
        return True


# Checking


class Verified(Struct, frozen=True):
    """What was found in an audit log."""

    lines: int
    """Whole lines that are right, from the first one on."""

    digest: str
    """That of the last of them."""

    fault: str = ""
    """What is wrong in the line after them; empty where nothing is."""

    torn_bytes: int = 0
    """What there is of a last line that was not finished: no sign of tampering."""


def verify(path: Path, noted: str = "") -> Verified:
    """Return what a log holds, up to the first line that is wrong.

    `noted` is the digest of a line that was there once: where it is gone, that is the fault. Raises
    InvalidConfiguration where the file cannot be read.
    """
    lines, digest, is_noted = 0, _BEGINNING, not noted
    try:
        with path.open("rb") as file:
            while line := file.readline(LINE_MAX + 1):
                if not line.endswith(b"\n") and len(line) <= LINE_MAX:
                    return _whole(lines, digest, is_noted, len(line))
                found = _checked(line, lines + 1, digest)
                if isinstance(found, str):
                    return Verified(lines, digest, f"line {lines + 1}: {found}")
                lines, digest = found
                is_noted = is_noted or digest == noted
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure.strerror}") from failure
    return _whole(lines, digest, is_noted, 0)


def _whole(lines: int, digest: str, is_noted: bool, torn: int) -> Verified:
    fault = "" if is_noted else "the line with the noted digest is gone: cut off, or made anew"
    return Verified(lines, digest, fault, torn)


def _checked(line: bytes, number: int, previous: str) -> tuple[int, str] | str:
    """Return a line's number and digest, or why it cannot stand there."""
    sealed = _SEAL.fullmatch(line.removesuffix(b"\n"))
    if sealed is None:
        return "it is not a line of an audit log"
    body, digest = sealed[1], sealed[2].decode()
    if hashlib.sha256(body).hexdigest() != digest:
        return "it was changed: its digest is another one"
    try:
        link = msgspec.json.decode(body + b"}", type=_Link)
    except ValueError:
        return "it is not a line of an audit log"
    if link.number != number or link.previous != previous:
        return (
            f"it does not follow on the line before (it has number {link.number}): lines were "
            "removed, put in or moved"
        )
    return number, digest


# Files and lines


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot write {path}: {failure.strerror}") from failure
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as failure:
        os.close(file)
        raise InvalidConfiguration(
            f"another process writes the audit log {path}: stop that one first"
        ) from failure
    return file


def _cut(path: Path, file: int, size: int) -> None:
    try:
        os.ftruncate(file, size)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot write {path}: {failure.strerror}") from failure


def _end(path: Path, file: int) -> tuple[int, str, int, bytes]:
    """Return number and digest of the last whole line, where it ends, and what is torn after it."""
    size = os.fstat(file).st_size
    tail = os.pread(file, 2 * LINE_MAX, max(0, size - 2 * LINE_MAX))
    whole, end, torn = tail.rpartition(b"\n")
    if not end:
        if size > LINE_MAX:
            raise _damaged(path, "its last line has no end")
        return 0, _BEGINNING, 0, torn
    line = whole.rpartition(b"\n")[2]
    try:
        link = msgspec.json.decode(line, type=_Link)
    except ValueError as failure:
        raise _damaged(path, "its last line is not one of an audit log") from failure
    found = _checked(line, link.number, link.previous)
    if isinstance(found, str):
        raise _damaged(path, f"its last line is not right: {found}")
    return (*found, size - len(torn), torn)


def _damaged(path: Path, reason: str) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"the audit log {path} is damaged: {reason}; keep it for whoever looks into that, and move "
        "it away so that a new one begins"
    )


def _whose(facts: Mapping[str, object]) -> str:
    """Return whom an event is about: a user, or whoever is at an address; empty for the broker."""
    if "user" in facts:
        return f"user {facts['user']}"
    if "address" in facts:
        return place_of(str(facts["address"]).rpartition(":")[0])
    return place_of(str(facts.get("host", "")))


def _sealed(said: dict[str, object]) -> tuple[bytes, str]:
    """Return a line, and its digest. All beyond ASCII is escaped, and so is every end of a line."""
    body = json.dumps(said, separators=(",", ":")).encode("ascii").removesuffix(b"}")
    digest = hashlib.sha256(body).hexdigest()
    return b'%b,"digest":"%b"}\n' % (body, digest.encode()), digest


def _plain(value: object) -> object:
    """Return a fact as JSON can say it, cut to a bounded length."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        items = [_plain(each) for each in value[:_ITEMS_MAX]]
        more = len(value) - len(items)
        return [*items, f"and {more} more"] if more else items
    text = str(value)
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."


def _write(file: int, line: bytes) -> None:
    while line:
        line = line[os.write(file, line) :]
