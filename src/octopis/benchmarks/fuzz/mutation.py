"""Inputs from inputs. Beside what chance does to bytes, msgpack is taken apart and put together.

So a number becomes one at a bound, a text a very long one, an array one level deeper, and the rest
still is a message: bytes that are changed by chance seldom are.
"""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from octopis.core.wire.frames import FrameKind

INPUT_MAX = 8_192
_NODES_MAX = 400
_LEAVES: Sequence[Any] = (
    None, True, False, 0, 1, -1, 127, 128, 2**31, 2**32, 2**53, 2**62, 2**62 + 1, 2**63 - 1, 2**63,
    2**64 - 1, -(2**31), -(2**63), 0.0, -0.0, 0.5, 5e-324, 1.8e308, float("inf"), float("nan"), "",
    "a", "/", ":", "\0", "\n", "%", "\x7f", "\u202e", "é", "e\u0301", "\U0001f600", "a" * 64,
    "a" * 129, "a" * 256, "x = 1", "TRUE", "%" * 300, b"", b"\0", b"\xff" * 9,
    b"a" * 300, [], {}, [[]], {"": 0},
)  # fmt: skip
_RAW = (
    b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff",
    b"\xd9\x02\xc3\x28", b"\xc7\x0c\xff" + b"\0" * 12, b"\xd6\xff\xff\xff\xff\xff",
    b"\xcb\x7f\xf8\0\0\0\0\0\0", b"\x91" * 1_200, b"\xdb\xff\xff\xff\xff", b"\x81\xa1a" * 600,
    b"\xca\x7f\xc0\0\0",
)  # fmt: skip
"""Pieces that no encoder writes: lengths that are not there, text that is none, endless nesting."""

_PUBLISH, _REQUEST_BYTES = bytes([FrameKind.PUBLISH]), 8
"""Publications have their number before the array."""

Mutate = Callable[[bytes, int, int], bytes]


def mutated(data: bytes, size_max: int, seed: int) -> bytes:
    """Return an input that was made from another one by changing bytes; repeatable."""
    chosen = random.Random(seed)  # noqa: S311 - repeatable on purpose
    made = bytearray(data)
    for _ in range(chosen.choice((1, 1, 2, 4))):
        at = chosen.randrange(len(made) + 1)
        match chosen.randrange(6):
            case 0:
                made[at:at] = chosen.randbytes(chosen.choice((1, 1, 2, 8)))
            case 1:
                del made[at : at + chosen.choice((1, 1, 2, 8, 64))]
            case 2:
                made[at : at + 1] = bytes([chosen.choice((0, 1, 0x7F, 0x80, 0xFF))])
            case 3:
                other = chosen.randrange(len(made) + 1)
                made[at:at] = made[other : other + chosen.choice((1, 4, 16, 64))]
            case 4:
                made[at : at + 1] = chosen.randbytes(1)
            case _:
                made[at:at] = chosen.choice(_RAW)
    return bytes(made[:size_max])


def rebuilt(data: bytes, size_max: int, seed: int, head: int) -> bytes | None:
    """Return an input whose msgpack, after `head` bytes, was taken apart; None where it is none."""
    try:
        tree = msgspec.msgpack.decode(data[head:])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    chosen = random.Random(seed)  # noqa: S311 - repeatable on purpose
    places: list[tuple[Any, Any]] = []
    _collect(tree, places)
    if not places:
        tree = chosen.choice(_LEAVES)
    for _ in range(chosen.choice((1, 1, 2, 3)) if places else 0):
        holder, key = chosen.choice(places)
        _change(holder, key, chosen)
    try:
        made = data[:head] + msgspec.msgpack.encode(tree)
    except (TypeError, ValueError, OverflowError):  # a key that cannot be one any more
        return None
    return made if len(made) <= size_max else None


def _collect(node: Any, places: list[tuple[Any, Any]]) -> None:
    if len(places) > _NODES_MAX:
        return
    if isinstance(node, list):
        for number, each in enumerate(node):
            places.append((node, number))
            _collect(each, places)
    elif isinstance(node, dict):
        for key, each in node.items():
            places.append((node, key))
            _collect(each, places)


def _change(holder: Any, key: Any, chosen: random.Random) -> None:
    if (isinstance(holder, list) and key >= len(holder)) or (
        isinstance(holder, dict) and key not in holder
    ):
        return  # an earlier change has taken it away
    value = holder[key]
    match chosen.randrange(7):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, chosen.choice((value, chosen.choice(_LEAVES))))
        case 2 if isinstance(value, str | bytes):
            holder[key] = value * chosen.choice((2, 10, 100))
        case 2 if isinstance(value, int) and not isinstance(value, bool):
            holder[key] = chosen.choice((value + 1, value - 1, -value, value << 8, float(value)))
        case 3:
            holder[key] = [value]
        case 4 if isinstance(holder, dict):
            holder[chosen.choice(("", "x", "type", "ask", 0, 1))] = chosen.choice(_LEAVES)
        case _:
            holder[key] = chosen.choice(_LEAVES)


def mutate_frame(data: bytes, size_max: int, seed: int) -> bytes:
    """Return another input of a target that takes one frame: its kind, then msgpack."""
    head = 1 + _REQUEST_BYTES if data[:1] == _PUBLISH else 1
    made = rebuilt(data, size_max, seed, head) if seed % 3 else None
    return made or mutated(data, size_max, seed)


def mutate_stream(head: int) -> Mutate:
    """Return a mutation of inputs that are, after `head` bytes, frames with their lengths."""

    def mutate(data: bytes, size_max: int, seed: int) -> bytes:
        chosen = random.Random(seed)  # noqa: S311 - repeatable on purpose
        frames = _frames(data[head:])
        if not frames or seed % 4 == 0:
            return mutated(data, size_max, seed)
        at = chosen.randrange(len(frames))
        match chosen.randrange(8):
            case 0:
                frames.insert(chosen.randrange(len(frames) + 1), frames[at])
            case 1 if len(frames) > 1:
                del frames[at]
            case _:
                frames[at] = mutate_frame(frames[at], size_max, seed)
        made = data[:head] + b"".join(struct.pack(">I", len(each)) + each for each in frames)
        return made[:size_max]

    return mutate


def _frames(stream: bytes) -> list[bytes]:
    found, at = [], 0
    while at + 5 <= len(stream):
        (length,) = struct.unpack_from(">I", stream, at)
        if not 0 < length <= len(stream):
            break
        found.append(stream[at + 4 : at + 4 + length])
        at += 4 + length
    return found
