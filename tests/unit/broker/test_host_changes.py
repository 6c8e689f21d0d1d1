"""Changes that hosts have numbered, while they wait for a link (target routing)."""

from hypothesis import given
from hypothesis import strategies as st

from octopis.broker.links.changes import WaitingChanges
from octopis.core.filters import parse_filter
from octopis.core.routing.messages import (
    HeardVersions,
    HostChange,
    HostTable,
    Message,
    Subscription,
)
from octopis.core.wire.frames import FrameDecoder
from octopis.core.wire.link import LinkDecoder, frames_of
from octopis.core.wire.subscriptions import PART_MAX
from support.overlays import A0, A1, B0

FILTER = parse_filter("x > 1")
TARGETS = 0b110


def added(number: int, name: str, targets: int = TARGETS, generation: int = 1) -> HostChange:
    subscription = Subscription(name, FILTER, number)
    return HostChange(A0, generation, number - 1, number, (subscription,), (), targets)


def removed(number: int, name: str, targets: int = TARGETS) -> HostChange:
    return HostChange(A0, 1, number - 1, number, (), (name,), targets)


def sent(changes: WaitingChanges, bytes_max: float = 1e9) -> list[Message]:
    """Return what the neighbour reads of what is taken."""
    decoder = LinkDecoder()
    frames = FrameDecoder().receive_data(b"".join(frames_of(changes.take(bytes_max)[0])))
    return [message for frame in frames for message in decoder.decode(frame)]


def test_later_change_of_a_subscription_goes_behind_the_others_and_the_earlier_is_left_out():
    changes = WaitingChanges(10)
    first = changes.put(added(1, "a"))
    assert changes.put(added(2, "b"))[1] == 0
    assert changes.put(removed(3, "a")) == (first[0], 1)
    told = sent(changes)
    assert [(each.after, each.sequence, each.removed) for each in told] == [
        (0, 2, ()),
        (2, 3, ("a",)),
    ]


def test_churn_leaves_no_more_behind_than_there_are_subscriptions():
    said: list[bool] = []
    changes = WaitingChanges(30, said.append)
    for number in range(1, 2_001):
        name = str(number % 20)
        changes.put(removed(number, name) if number // 20 % 2 else added(number, name))
    assert len(changes) == 20
    assert not said


def test_changes_on_other_ways_or_after_a_gap_are_runs_of_their_own():
    changes = WaitingChanges(10)
    messages = [added(1, "a"), added(2, "a", targets=2), added(3, "a"), added(5, "a")]
    for each in messages:
        assert changes.put(each)[1] == 0
    assert sent(changes) == messages


def test_what_waits_already_does_not_wait_twice():
    changes = WaitingChanges(10)
    for number in (1, 2, 3):
        changes.put(added(number, str(number), targets=0))
    assert changes.put(added(2, "2", targets=0))[1] == 1
    assert [each.sequence for each in sent(changes)] == [1, 2, 3]
    assert changes.put(added(2, "2", targets=0))[1] == 0  # it has gone, and is asked for again


def table(sequence: int, count: int) -> HostTable:
    rows = tuple(Subscription(str(number), FILTER) for number in range(count))
    return HostTable(A0, 1, sequence, rows)


def test_table_of_a_host_is_told_in_short_parts_and_is_one_message():
    changes = WaitingChanges(1)
    changes.put(table(7, 3 * PART_MAX))
    assert not changes.is_past_mark
    found, messages = changes.take(1e9)
    assert (len(found), messages) == (3, 1)
    changes.put(table(7, 3 * PART_MAX))
    parts = [sent(changes, 1)[0] for _ in range(3)]
    assert [part.last for part in parts] == [False, False, True]
    assert sum((part.subscriptions for part in parts), ()) == table(7, 3 * PART_MAX).subscriptions


def test_table_that_waits_is_not_told_twice_and_a_newer_one_takes_its_place():
    changes = WaitingChanges(10)
    key, _ = changes.put(table(7, 10))
    assert changes.put(table(7, 10))[1] == 1
    assert changes.put(table(8, 9)) == (key, 1)
    assert {each.sequence for each in sent(changes, 1)} == {8}
    assert changes.put(table(9, 9))[1] == 0  # the one before it has begun, and goes on
    assert [each.sequence for each in sent(changes) if each.last] == [8, 9]


def test_what_was_heard_is_said_at_once_for_all_that_waits():
    changes = WaitingChanges(10)
    changes.put(HeardVersions({A0: (1, 1), A1: (1, 2)}, is_complete=False))
    changes.put(added(1, "a"))
    assert changes.put(HeardVersions({A0: (1, 5), B0: (2, 0)}))[1] == 1
    assert sent(changes)[0] == HeardVersions({A0: (1, 5), A1: (1, 2), B0: (2, 0)})


class Neighbour:
    """Takes in the changes of one host, as `Spreading` does."""

    def __init__(self) -> None:
        self.sequence = 0
        self.has: dict[str, int] = {}

    def hear(self, change: HostChange) -> None:
        assert change.after <= self.sequence, "a change is missing before it"
        if change.sequence <= self.sequence:
            return
        self.sequence = change.sequence
        for each in change.removed:
            self.has.pop(each, None)
        for each in change.added:
            self.has[each.id] = each.epoch


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("+-"), st.sampled_from("abc"), st.booleans()),
            st.tuples(st.just("take"), st.integers(1, 200), st.just(True)),
            st.tuples(st.just("other way"), st.just(""), st.just(True)),
            st.tuples(st.just("cut"), st.just(""), st.just(True)),
        )
    )
)
def test_neighbour_ends_up_with_the_same_however_changes_were_joined(steps):
    """It may also have heard the newest changes one by one, from somebody else."""
    changes, there, here = WaitingChanges(3), Neighbour(), Neighbour()
    written: list[HostChange] = []
    for what, about, is_added in steps:
        if what == "take":
            for each in sent(changes, about):
                there.hear(each)
        elif what == "other way":
            for each in written:
                if each.sequence > there.sequence:
                    there.hear(each)
        elif what == "cut":
            for each in changes.clear():
                there.hear(each)
        else:
            number = len(written) + 1
            written.append(added(number, about) if is_added else removed(number, about))
            here.hear(written[-1])
            changes.put(written[-1])
        assert len(changes) <= 3
    for each in sent(changes):
        there.hear(each)
    assert (there.sequence, there.has) == (here.sequence, here.has)
    assert len(changes) == 0
