import pytest

from octopis.core.wire.frames import BodyDecoder, encode
from octopis.errors import ProtocolError


def test_value_of_the_wanted_type_comes_back():
    assert BodyDecoder[list[int]](list[int], "a list").decode(encode([1, 2])) == [1, 2]


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", encode(["text"]), encode([1])[:-1], encode([1]) + b"x", b"\x91" * 100_000],
    ids=["nothing", "no msgpack", "another type", "cut short", "too much", "nested without end"],
)
def test_anything_else_is_a_protocol_error_that_says_what(body: bytes):
    with pytest.raises(ProtocolError, match="a list cannot be read"):
        BodyDecoder[list[int]](list[int], "a list").decode(body)


def test_text_that_is_not_utf_8_is_a_protocol_error():
    with pytest.raises(ProtocolError, match="a name cannot be read"):
        BodyDecoder[str](str, "a name").decode(b"\xa1\xff")
