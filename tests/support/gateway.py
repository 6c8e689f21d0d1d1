"""Gateways as real processes, and clients that nobody here wrote: curl above all."""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from support.overlay_command import Shell, Up, wait_until

_CURL = shutil.which("curl") or "curl"


class Answer(NamedTuple):
    """What curl got."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        """The body, which is JSON."""
        return json.loads(self.body)


def curl(url: str, *words: str | bytes, data: bytes | None = None, limit_s: float = 20.0) -> Answer:
    """Make a request with curl."""
    given = () if data is None else ("--data-binary", "@-")
    done = subprocess.run(
        [_CURL, "-sS", "-i", "--max-time", str(limit_s), *given, *words, url],
        input=data,
        capture_output=True,
        check=False,
    )
    text = done.stdout.decode()
    while text.startswith("HTTP/1.1 100"):
        text = text.partition("\r\n\r\n")[2]
    head, _, body = text.partition("\r\n\r\n")
    assert head, done.stderr.decode()
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    return Answer(int(first.split()[1]), headers, body)


def post(url: str, value: Any, *words: str) -> Answer:
    """Post JSON."""
    return curl(
        url, "-H", "content-type: application/json", *words, data=json.dumps(value).encode()
    )


def publish(gateway: "Gateway", data: bytes, *words: str) -> Answer:
    """Post bytes as they are."""
    return curl(f"{gateway.url}/notifications", *words, data=data)


class Event(NamedTuple):
    """A server-sent event."""

    kind: str
    id: str
    data: Any


class Events:
    """`curl -N` on a stream of server-sent events."""

    def __init__(self, url: str, *words: str) -> None:
        self._popen = subprocess.Popen(
            [_CURL, "-sS", "-N", *words, url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        first = self._line()
        assert first.startswith((":", "event:")), first
        self._first = "" if first.startswith(":") else first

    def next(self) -> Event:
        """Return the next event; comments are left out."""
        fields = {"event": "message", "id": "", "data": ""}
        while True:
            line = self._first or self._line()
            self._first = ""
            if line == "\n" and fields["data"]:
                return Event(fields["event"], fields["id"], json.loads(fields["data"]))
            name, _, value = line.rstrip("\n").partition(": ")
            if name in fields:
                fields[name] = value

    def take(self, count: int) -> list[Event]:
        """Return the next events."""
        return [self.next() for _ in range(count)]

    def rest(self) -> str:
        """Return what comes until the stream ends."""
        return self._popen.communicate(timeout=30)[0]

    def stop(self) -> None:
        """Go away."""
        self._popen.kill()
        self._popen.communicate()

    def _line(self) -> str:
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        assert line, f"the stream has ended: {self._popen.communicate()[1]}"
        return line


@contextmanager
def events(url: str, *words: str, **query: str) -> Iterator[Events]:
    """Follow a stream meanwhile."""
    text = "&".join(f"{name}={quote(value)}" for name, value in query.items())
    stream = Events(f"{url}?{text}" if text else url, *words)
    try:
        yield stream
    finally:
        stream.stop()


class Gateway:
    """A gateway, and the overlay behind it."""

    def __init__(self, url: str, up: Up) -> None:
        self.url, self.up = url, up
        self.address = urlsplit(url).netloc

    def publish(self, *notifications: dict[str, Any]) -> None:
        """Publish, and see that all is accepted."""
        found = post(f"{self.url}/notifications", list(notifications))
        assert (found.status, found.json) == (202, {"accepted": len(notifications)})

    def settled(self) -> None:
        """Wait until every broker knows all subscriptions made before."""
        from octopis import connect_sync  # noqa: PLC0415 - most tests need no client of ours

        with connect_sync(self.up.url(next(iter(self.up.addresses)))) as client:
            client.settled()

    def metrics(self) -> str:
        """Return what Prometheus gets."""
        return curl(f"{self.url}/metrics").body

    def connection(self) -> HTTPConnection:
        """Return a connection to write to by hand."""
        return HTTPConnection(self.address, timeout=20)


@contextmanager
def gateway_run(shell: Shell, up: Up, *words: str) -> Iterator[Gateway]:
    """Run `octopis gateway run` for an overlay."""
    process = shell.start("gateway", "run", "--port", "0", *words)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " is at http" in line, process.communicate()[1]
        url = line.partition(" is at ")[2].partition(",")[0]
        yield Gateway(url, up)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        process.communicate(timeout=30)


def wait_for_status(url: str, status: int, limit_s: float = 20.0) -> None:
    """Wait until a question is answered with a status."""
    wait_until(lambda: curl(url).status == status, limit_s)
