"""A client without OctopiS: plain Python, and what docs/wire.md says.

    python plain_client.py HOST:PORT FILTER [NAME=VALUE...]

It subscribes, publishes a notification of the attributes if there are any, and prints what it
receives, one line of JSON for each, until Ctrl-C.
"""

import json
import secrets
import socket
import struct
import sys
import time
from base64 import b64encode
from contextlib import suppress
from io import BytesIO
from typing import Any, BinaryIO

HELLO, WELCOME, REFUSED, GOODBYE, PING, PONG = 1, 2, 3, 4, 5, 6
SUBSCRIBE, PUBLISH, CONSUMED, ANSWERS, DELIVER, GAP = 32, 34, 35, 36, 37, 38
WINDOW = 100

# MessagePack: of several forms of a value we write the longest, and read all.
PLAIN = {0xC0: None, 0xC2: False, 0xC3: True}
NUMBERS = dict(zip((0xCA, 0xCB, *range(0xCC, 0xD4)), "fdBHIQbhiq", strict=True))
BYTES, TEXTS = {0xC4: "B", 0xC5: "H", 0xC6: "I"}, {0xD9: "B", 0xDA: "H", 0xDB: "I"}
ARRAYS, MAPS = {0xDC: "H", 0xDD: "I"}, {0xDE: "H", 0xDF: "I"}
SIZES = BYTES | TEXTS | ARRAYS | MAPS


def encode(value: Any) -> bytes:
    """Return a value as MessagePack."""
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int | float):
        return struct.pack(*((">Bq", 0xD3) if isinstance(value, int) else (">Bd", 0xCB)), value)
    if isinstance(value, str | bytes):
        code, data = (0xDB, value.encode()) if isinstance(value, str) else (0xC6, value)
        return struct.pack(">BI", code, len(data)) + data
    code, items = (0xDF, sum(value.items(), ())) if isinstance(value, dict) else (0xDD, value)
    return struct.pack(">BI", code, len(value)) + b"".join(map(encode, items))


def number(data: BinaryIO, form: str) -> Any:
    """Return the number that comes next, in a form of Python's struct."""
    return struct.unpack(">" + form, data.read(struct.calcsize(form)))[0]


def decode(data: BinaryIO) -> Any:
    """Return the value that comes next."""
    first = number(data, "B")
    if first < 0x80 or first >= 0xE0:
        return first if first < 0x80 else first - 0x100
    if first in PLAIN:
        return PLAIN[first]
    if first in NUMBERS:
        return number(data, NUMBERS[first])
    short = first & (0x1F if first >= 0xA0 else 0x0F)
    size = number(data, SIZES[first]) if first in SIZES else short
    if first in BYTES or first in TEXTS or 0xA0 <= first < 0xC0:
        found = data.read(size)
        return found if first in BYTES else found.decode()
    if first in ARRAYS or 0x90 <= first < 0xA0:
        return [decode(data) for _ in range(size)]
    return {decode(data): decode(data) for _ in range(size)}


class PlainClient:
    """One connection, one subscription, at most one publication."""

    def __init__(self, address: str, wanted: str, *words: str) -> None:
        host, _, port = address.removeprefix("octopis://").rpartition(":")
        self.stream = socket.create_connection((host, int(port))).makefile("rwb")
        self.name = f"plain-{secrets.token_hex(4)}"
        self.wanted, self.words, self.received = wanted, words, 0
        hello = {"role": "client", "client": self.name, "window": WINDOW}
        self.send(HELLO, encode({**hello, "magic": "octopis", "version": 1}))

    def send(self, kind: int, body: bytes) -> None:
        """Send a frame: its length, its kind, its body."""
        self.stream.write(struct.pack(">IB", len(body) + 1, kind) + body)
        self.stream.flush()

    def run(self) -> None:
        """Take in frames until the end."""
        while head := self.stream.read(4):
            frame = BytesIO(self.stream.read(struct.unpack(">I", head)[0]))
            kind, body = number(frame, "B"), decode(frame)
            if kind in (REFUSED, GOODBYE):
                sys.exit(body["message" if kind == REFUSED else "reason"])
            elif kind == WELCOME:
                wish = {"request": 1, "number": 1, "id": f"{self.name}/1", "filter": self.wanted}
                self.send(SUBSCRIBE, encode({**wish, "dialect": "sql", "epoch": 0}))
            elif kind == ANSWERS:
                self.take_answers(body)
            elif kind == DELIVER:
                self.take_deliveries(body)
            elif kind == GAP:
                print(f"{body['dropped']} are missing here: too slow", file=sys.stderr)
            elif kind == PING:
                self.send(PONG, encode({}))

    def take_answers(self, answers: list[Any]) -> None:
        """End where something is refused; publish once the subscription stands."""
        for request, refusal, *_ in answers:
            if refusal is not None:
                sys.exit(f"request {request} is refused: {refusal['message']}")
            if request == 1 and self.words:
                notification = [attributes(self.words), b"", self.name, 1, time.time_ns()]
                self.send(PUBLISH, struct.pack(">Q", 2) + encode([notification]))

    def take_deliveries(self, deliveries: list[Any]) -> None:
        """Print notifications, and let the broker send more."""
        for _numbers, (found, payload, publisher, sequence, _intended_ns) in deliveries:
            whole = {"attributes": found, "payload": b64encode(payload).decode()}
            print(json.dumps({**whole, "publisher": publisher, "sequence": sequence}), flush=True)
        self.received += len(deliveries)
        self.send(CONSUMED, encode({"deliveries": self.received}))


def attributes(words: tuple[str, ...]) -> dict[str, Any]:
    """Return attributes from NAME=VALUE: numbers and booleans as JSON has them, else texts."""
    found: dict[str, Any] = dict(word.split("=", 1) for word in words)
    for name, value in found.items():
        with suppress(ValueError):
            found[name] = json.loads(value)
    return found


if __name__ == "__main__":
    PlainClient(*sys.argv[1:]).run()
