"""Bodies of frames: msgpack, decoded into types and nothing else."""

from typing import Any, Generic, TypeVar

import msgspec

from octopis.errors import ProtocolError

_Body = TypeVar("_Body")

encode = msgspec.msgpack.Encoder().encode


class BodyDecoder(Generic[_Body]):
    """Decodes bodies of one type; anything else is a ProtocolError."""

    def __init__(self, wanted: Any, what: str) -> None:
        self._decoder: msgspec.msgpack.Decoder[_Body] = msgspec.msgpack.Decoder(wanted)
        self._what = what

    def decode(self, body: bytes | memoryview) -> _Body:
        """Return the value, or raise ProtocolError."""
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError) as failure:
            # ValueError: text that is not UTF-8; RecursionError: nested without end.
            raise ProtocolError(f"{self._what} cannot be read: {failure}") from failure
