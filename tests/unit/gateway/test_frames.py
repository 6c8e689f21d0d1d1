"""What goes over a WebSocket: messages in order, in frames that are never much too long."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.gateway.documents import NotificationOut
from octopis.gateway.doors.websocket.frames import FRAME_BYTES, framed, messages_of
from octopis.gateway.doors.websocket.messages import NAME_LENGTH_MAX, read_messages
from octopis.gateway.problems import Problem
from octopis.gateway.readers.reader import encode_batch


@given(st.lists(st.integers(1, FRAME_BYTES + 10_000), max_size=20))
def test_frames_have_all_messages_in_order_and_are_too_long_for_a_single_one_only(
    sizes: list[int],
):
    messages = [b"%d" % (index % 10) * size for index, size in enumerate(sizes)]
    frames = list(framed(messages))
    assert b",".join(each[1:-1] for each in frames) == b",".join(messages)
    for each in frames:
        assert len(each) <= FRAME_BYTES + 2 or b"," not in each


def test_longest_id_makes_no_long_frame_of_small_notifications():
    batch = encode_batch([NotificationOut({"n": n}, "p", n, 0) for n in range(256)])
    frames = list(framed(messages_of([("\N{OCTOPUS}" * NAME_LENGTH_MAX, batch)] * 10)))
    assert max(map(len, frames)) <= FRAME_BYTES + 2
    told = [each for frame in frames for each in json.loads(frame)]
    assert [each["attributes"]["n"] for each in told] == [*range(256)] * 10
    assert {each["id"] for each in told} == {"\N{OCTOPUS}" * NAME_LENGTH_MAX}


@pytest.mark.parametrize(
    ("kind", "field"),
    [("subscribe", "id"), ("unsubscribe", "id"), ("ack", "id"), ("publish", "request")],
)
def test_names_that_answers_repeat_have_a_length(kind: str, field: str):
    other = {"attributes": {}, "position": 1, "filter": "a = 1"}
    known = {"publish": ["attributes"], "ack": ["position"], "subscribe": ["filter"]}
    about = {"type": kind, **{name: other[name] for name in known.get(kind, ())}}
    right, long = ({**about, field: "x" * length} for length in (128, 129))
    assert not isinstance(read_messages(msgspec.json.encode(right))[0], Problem)
    for text in (msgspec.json.encode(long), msgspec.json.encode([long])):
        (found,) = read_messages(text)
        assert isinstance(found, Problem)
        assert "length <= 128" in found.document.detail
