import pytest
from msgspec.msgpack import encode

from octopis.core.wire.published import decode_one, decode_published, encode_published, says_twice

REST = b"".join(map(encode, (b"body", "me", 1, 2)))
PAIR = encode("tenant") + encode("b"), encode("tenant") + encode("a")
MAPS = [lambda count: bytes([0x80 | count]), lambda count: b"\xde\x00" + bytes([count])]
ARRAYS = [b"\x95", b"\xdc\x00\x05", b"\xdd\x00\x00\x00\x05"]


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("map_of", MAPS)
def test_an_attribute_that_stands_twice_is_found_however_it_is_written(array, map_of):
    twice = decode_one(array + map_of(2) + PAIR[0] + PAIR[1] + REST)
    assert twice.attributes == {"tenant": "a"}
    assert says_twice(twice)
    assert not says_twice(decode_one(array + map_of(1) + PAIR[0] + REST))


def test_a_long_map_header_is_read_as_well():
    assert says_twice(decode_one(b"\x95\xdf\x00\x00\x00\x02" + PAIR[0] + PAIR[1] + REST))


@pytest.mark.parametrize("count", [0, 1, 15, 16, 64])
def test_what_clients_publish_has_each_attribute_once(count: int):
    encoded = encode_published({f"n{n}": n for n in range(count)}, b"body", "me", 1, 2)
    (found,) = decode_published(b"\x91" + encoded)
    assert not says_twice(found)
