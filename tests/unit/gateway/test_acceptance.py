"""What the gateway takes for one request must be one to the client, too."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from octopis.client.publishing import CHUNK_BYTES
from octopis.core.model import Notification
from octopis.core.wire.published import encode_published
from octopis.gateway.doors.acceptance import Together
from octopis.gateway.doors.lines import _TRACE_BYTES
from octopis.gateway.doors.traced import traced

_TEXT = st.text(st.characters(codec="utf-8"), max_size=300)
_VALUES = st.one_of(_TEXT, st.integers(-(2**63), 2**63 - 1), st.floats(), st.booleans())
_ATTRIBUTES = st.dictionaries(_TEXT, _VALUES, max_size=20)
_PAYLOADS = st.sampled_from([0, 1, 255, 256, 65_535, 65_536]).map(bytes)


@given(
    st.lists(st.tuples(_ATTRIBUTES, _PAYLOADS), min_size=1, max_size=5),
    st.text(st.characters(codec="utf-8"), max_size=128),
)
def test_no_request_is_longer_on_the_wire_than_was_thought(
    found: list[tuple[dict[str, Any], bytes]], publisher: str
):
    together = Together(SimpleNamespace(id=publisher), _TRACE_BYTES)  # type: ignore[arg-type]
    traceparent = f"00-{'1' * 32}-{'2' * 16}-01"
    encoded = 0
    for attributes, payload in found:
        (each,) = traced([Notification(attributes, payload)], traceparent)
        if encoded >= CHUNK_BYTES:
            assert together.is_full, "the client would send what it has"
        together.add(Notification(attributes, payload))
        large = 2**63 - 1
        encoded += len(encode_published(each.attributes, each.payload, publisher, large, large))
    assert encoded <= together._size
