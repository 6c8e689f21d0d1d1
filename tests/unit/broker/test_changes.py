from hypothesis import given
from hypothesis import strategies as st

from octopis.broker.links.changes import WaitingChanges
from octopis.core.filters import parse_filter
from octopis.core.model import ClusterBitVector
from octopis.core.routing.messages import (
    Message,
    Refresh,
    Subscribe,
    Subscription,
    TableSnapshot,
    Unsubscribe,
)
from octopis.core.wire.frames import FrameDecoder
from octopis.core.wire.link import LinkDecoder, frames_of
from octopis.core.wire.subscriptions import PART_MAX
from support.overlays import A0

FILTER = parse_filter("x > 1")


def beginning(name: str, epoch: int = 0) -> Subscribe:
    return Subscribe(Subscription(name, FILTER, epoch), ClusterBitVector(1), A0)


def sent(changes: WaitingChanges, bytes_max: float = 1e9) -> list[Message]:
    """Return what the neighbour reads of what is taken."""
    found: list[Message] = []
    decoder = LinkDecoder()
    for frame in FrameDecoder().receive_data(b"".join(frames_of(changes.take(bytes_max)[0]))):
        said = decoder.decode(frame)
        assert isinstance(said, list)
        found += said
    return found


def test_changes_go_in_their_order():
    changes = WaitingChanges(10)
    messages = [beginning("a"), Refresh(A0, 1), beginning("b"), Refresh(A0, 1)]
    assert [changes.put(each)[1] for each in messages] == [0, 0, 0, 0]
    assert sent(changes) == messages
    assert len(changes) == 0


def test_later_change_takes_the_place_of_an_earlier_one():
    changes = WaitingChanges(10)
    changes.put(beginning("a"))
    changes.put(beginning("b"))
    assert changes.put(beginning("a", 1)) == ("a", 1)
    assert sent(changes) == [beginning("a", 1), beginning("b")]


def test_end_takes_back_a_beginning_that_was_never_told():
    changes = WaitingChanges(10)
    changes.put(beginning("a"))
    assert changes.put(Unsubscribe("a")) == ("a", 2)
    assert len(changes) == 0


def test_end_of_what_was_told_is_told():
    changes = WaitingChanges(10)
    changes.put(TableSnapshot((beginning("a"),)))
    changes.put(beginning("b"))
    sent(changes)
    for name in ("a", "b"):
        changes.put(beginning(name, 1))
        assert changes.put(Unsubscribe(name)) == (name, 1)
    assert sent(changes) == [Unsubscribe("a"), Unsubscribe("b")]
    changes.put(beginning("a", 2))  # and then it is new again
    assert changes.put(Unsubscribe("a")) == ("a", 2)


def test_clients_that_come_and_go_leave_nothing_behind():
    changes = WaitingChanges(10)
    for number in range(1_000):
        changes.put(beginning(f"s{number}"))
        changes.put(Unsubscribe(f"s{number}"))
    assert len(changes) == 0


def test_long_snapshot_goes_in_parts_and_counts_as_one():
    changes = WaitingChanges(1_000)
    table = tuple(beginning(f"s{number}") for number in range(200))
    changes.put(TableSnapshot(table))
    assert len(changes) == -(-200 // PART_MAX)
    parts: list[Message] = []
    counted = 0
    while len(changes):
        batch, messages = changes.take(1)
        counted += messages
        decoder = LinkDecoder()
        for frame in FrameDecoder().receive_data(b"".join(frames_of(batch))):
            parts += decoder.decode(frame)  # type: ignore[arg-type]
    assert counted == 1
    assert [part.last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert sum((part.subscriptions for part in parts), ()) == table


def test_mark_is_said_when_it_is_passed_and_when_half_are_gone():
    said: list[bool] = []
    changes = WaitingChanges(4, said.append)
    for number in range(5):
        changes.put(beginning(f"s{number}"))
    assert said == [True]
    for _ in range(2):
        changes.take(1)
    assert said == [True]
    changes.take(1)
    assert said == [True, False]


@given(st.lists(st.tuples(st.sampled_from("+-t"), st.sampled_from("abc"), st.integers(1, 99))))
def test_neighbour_ends_up_with_what_it_was_to_be_told(steps: list[tuple[str, str, int]]):
    """Whatever waits, is replaced and is taken back: in the end both sides agree."""
    changes = WaitingChanges(3)
    here: dict[str, int] = {}
    there: dict[str, int] = {}

    def take(bytes_max: float) -> None:
        for message in sent(changes, bytes_max):
            if isinstance(message, Subscribe):
                there[message.subscription.id] = message.subscription.epoch
            else:
                assert isinstance(message, Unsubscribe)
                assert there.pop(message.id, None) is not None, "nothing ends that never began"

    for number, (step, name, size) in enumerate(steps):
        if step == "t":
            take(size)
        elif step == "+":
            here[name] = number
            changes.put(beginning(name, number))
        elif here.pop(name, None) is not None:  # the core ends only what has begun
            changes.put(Unsubscribe(name))
        assert len(changes) <= 3
    take(1e9)
    assert there == here
