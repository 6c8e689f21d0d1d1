import pytest

from octopis.core.delivery.posts import RANGES_MAX, Open
from octopis.core.delivery.receiver import Missed, Receiver, origin_of
from octopis.core.model import Notification
from octopis.core.routing.messages import NotificationMessage

MS = 1_000_000
HERE, THERE, LIFE, STREAM = 2, 5, 7, 70
GIVE_UP_NS = 1000 * MS


@pytest.fixture
def fresh() -> Receiver:
    return Receiver(HERE, LIFE, held_max=20, give_up_ns=GIVE_UP_NS)


@pytest.fixture
def receiver(fresh: Receiver) -> Receiver:
    fresh.opened(opening(), 0)
    fresh.take_posts(0)
    return fresh


def opening(stream: int = STREAM, base: int = 0, **more: int) -> Open:
    return Open(HERE, THERE, more.pop("life", LIFE), stream, base, **more)


def message(number: int, before: int | None = None, stream: int = STREAM) -> NotificationMessage:
    """Return a copy for this host and another, whose distance comes first."""
    distance = 1 if before is None else number - before
    return NotificationMessage(
        Notification({}),
        targets=1 | 1 << HERE,
        origin=origin_of(THERE, stream),
        number=number,
        distances=(9, distance),
    )


def taken(receiver: Receiver, *messages: NotificationMessage, now_ns: int = 0) -> list[int]:
    return [each.number for each in receiver.in_order(messages, now_ns)]


def test_what_follows_is_handed_on_and_acknowledged_together(receiver: Receiver):
    assert taken(receiver, message(1), message(2), message(5, 2)) == [1, 2, 5]
    (ack,) = receiver.take_posts(0)
    assert (ack.to, ack.by, ack.life, ack.stream, ack.last) == (THERE, HERE, LIFE, STREAM, 5)
    assert receiver.is_quiet


def test_what_comes_early_waits(receiver: Receiver):
    assert taken(receiver, message(3), message(2)) == []
    assert (receiver.held, receiver.is_quiet) == (2, False)
    assert taken(receiver, message(1)) == [1, 2, 3]
    assert receiver.held == 0


def test_what_was_there_is_dropped_and_acknowledged_again(receiver: Receiver):
    taken(receiver, message(1))
    receiver.take_posts(0)
    assert taken(receiver, message(1)) == []
    assert [ack.last for ack in receiver.take_posts(0)] == [1]
    assert receiver.duplicates == 1


def test_what_waits_is_dropped_when_it_comes_again(receiver: Receiver):
    assert taken(receiver, message(2), message(2), message(1)) == [1, 2]
    assert receiver.duplicates == 1


def test_holes_are_named_when_others_had_time_to_be_overtaken(receiver: Receiver):
    taken(receiver, message(3), message(6))
    assert [ack.wanted for ack in receiver.take_posts(19 * MS)] == [()]
    receiver.look(100 * MS)
    assert [ack.wanted for ack in receiver.take_posts(100 * MS)] == [((0, 2), (3, 5))]


def test_so_many_holes_are_named_at_most(receiver: Receiver):
    taken(receiver, *[message(2 * each) for each in range(1, 21)])
    assert len(receiver.take_posts(100 * MS)[0].wanted) == RANGES_MAX


def test_what_has_no_room_to_wait_comes_again(receiver: Receiver):
    taken(receiver, *[message(number) for number in range(2, 30)])
    assert (receiver.held, receiver.refused) == (20, 8)
    assert taken(receiver, message(1)) == list(range(1, 22))


def test_nothing_is_taken_before_the_stream_was_opened(fresh: Receiver):
    assert taken(fresh, message(1)) == []
    assert [(ack.stream, ack.last) for ack in fresh.take_posts(0)] == [(STREAM, None)]
    assert [each.number for each in fresh.opened(opening(), 0)] == [1]  # it has waited
    assert taken(fresh, message(1), message(2)) == [2]


def test_nothing_is_taken_that_was_meant_for_an_earlier_life(fresh: Receiver):
    fresh.opened(opening(life=LIFE - 1), 0)
    assert taken(fresh, message(1)) == []
    assert [(ack.life, ack.last) for ack in fresh.take_posts(0)] == [(LIFE, None)]


def test_another_life_has_to_answer_first_and_then_the_last_one_is_dead(receiver: Receiver):
    taken(receiver, message(1))
    receiver.take_posts(0)
    receiver.opened(opening(STREAM + 1), 0)
    (ack,) = receiver.take_posts(0)
    assert ack.last is None
    assert ack.token
    assert taken(receiver, message(2)) == [2]
    receiver.opened(opening(STREAM + 1, token=ack.token), 0)
    assert taken(receiver, message(3), message(1, stream=STREAM + 1)) == [1]
    assert receiver.take_missed() == [Missed(THERE, None)]
    receiver.opened(opening(STREAM, token=ack.token), 0)
    assert taken(receiver, message(3)) == []


def test_a_question_stays_the_same_until_it_is_answered(receiver: Receiver):
    receiver.opened(opening(STREAM + 1), 0)
    first = receiver.take_posts(0)[0].token
    receiver.opened(opening(STREAM + 1), 0)
    assert receiver.take_posts(0)[0].token == first


def test_a_stream_that_ends_is_told_of_also_where_nothing_of_it_has_come(receiver: Receiver):
    receiver.opened(opening(STREAM + 1), 0)
    token = receiver.take_posts(0)[0].token
    receiver.opened(opening(STREAM + 1, token=token), 0)
    assert receiver.take_missed() == [Missed(THERE, None)]


def test_what_waited_when_its_stream_ends_is_handed_on_in_order(receiver: Receiver):
    taken(receiver, message(3), message(5))
    receiver.opened(opening(STREAM + 1), 0)
    token = receiver.take_posts(0)[-1].token
    found = receiver.opened(opening(STREAM + 1, token=token), 0)
    assert [each.number for each in found] == [3, 5]


def test_what_will_never_come_is_told_and_not_waited_for(receiver: Receiver):
    taken(receiver, message(3), message(4), message(9))
    found = receiver.opened(opening(base=5, given_up=2), 0)
    assert [each.number for each in found] == [3, 4]
    assert receiver.take_missed() == [Missed(THERE, 2)]
    assert taken(receiver, message(2)) == []
    assert taken(receiver, message(8, 5)) == [8, 9]
    receiver.opened(opening(base=5, given_up=2), 0)
    assert receiver.take_missed() == []


def test_a_silent_sender_is_not_waited_for(receiver: Receiver):
    taken(receiver, message(3), message(5))
    assert receiver.look(2 * GIVE_UP_NS - 1) == []  # the other end gives up first
    assert [each.number for each in receiver.look(2 * GIVE_UP_NS)] == [3, 5]
    assert receiver.take_missed() == [Missed(THERE, None)]
    assert taken(receiver, message(1), message(6)) == [6]


def test_a_sender_is_not_silent_where_it_was_a_silence_of_ones_own(receiver: Receiver):
    taken(receiver, message(3))
    receiver.stood_still(5 * GIVE_UP_NS)
    assert receiver.look(5 * GIVE_UP_NS) == []
