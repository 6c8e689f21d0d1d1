"""How lines are gathered: what the gateway takes for one request must be one to the client."""

import base64
import json

from hypothesis import given
from hypothesis import strategies as st

from octopis.core.wire.published import encode_published
from octopis.gateway.doors.lines import _OVERHEAD, wire_bytes_max
from octopis.gateway.doors.notations import read_notification

_TEXT = st.text(st.characters(codec="utf-8"), max_size=300)
_VALUE = st.one_of(
    _TEXT,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, 1.5, -1.0, 1e9]),
    st.booleans(),
)


@given(
    st.dictionaries(_TEXT.filter(bool).map(lambda name: name[:255]), _VALUE, max_size=20),
    st.binary(max_size=70_000) | st.just(b""),
    st.text(st.characters(codec="utf-8"), max_size=128),
)
def test_no_line_is_longer_on_the_wire_than_was_thought(
    attributes: dict[str, str | int | float | bool], payload: bytes, publisher: str
):
    text = {"attributes": attributes, "payload": base64.b64encode(payload).decode()}
    shown = text if payload else attributes
    line = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()
    found = read_notification(line)
    encoded = encode_published(found.attributes, found.payload, publisher, 2**63 - 1, 2**63 - 1)
    room = wire_bytes_max(line, len(found.attributes)) + _OVERHEAD + len(publisher.encode())
    assert len(encoded) <= room
