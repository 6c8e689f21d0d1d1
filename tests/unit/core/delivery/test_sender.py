import pytest

from octopis.core.delivery.options import DeliveryOptions
from octopis.core.delivery.posts import Ack
from octopis.core.delivery.sender import Sender
from octopis.core.model import Notification
from octopis.core.routing.messages import NotificationMessage

MS = 1_000_000
LIFE, ONE, OTHER = 7, 1, 2
BOTH = 1 << ONE | 1 << OTHER


@pytest.fixture
def sender() -> Sender:
    return made()


def made(**options: float) -> Sender:
    sender = Sender(0, 3, LIFE, DeliveryOptions(**options), origin=99)  # type: ignore[arg-type]
    lives = {ONE: 11, OTHER: 12}
    sender.life_of = lives.__getitem__
    sender.lives = lives  # type: ignore[attr-defined]
    return sender


def publish(sender: Sender, now_ns: int, *targets: int) -> list[NotificationMessage]:
    batch = [NotificationMessage(Notification({}, b"...."), targets=each) for each in targets]
    return sender.number(batch, now_ns)


def acknowledge(sender: Sender, last: int | None, now_ns: int, by: int = ONE, **more: object):
    sender.acknowledged(Ack(0, by, sender.life_of(by), LIFE, last, **more), now_ns)  # type: ignore[arg-type]


def numbers(messages: list[NotificationMessage]) -> list[tuple[int, int]]:
    return [(each.number, each.targets) for each in messages]


def test_distances_lead_to_the_number_before_that_was_for_the_same_target(sender: Sender):
    found = publish(sender, 0, BOTH, 1 << ONE, BOTH)
    assert [each.number for each in found] == [1, 2, 3]
    assert [each.distances for each in found] == [(1, 1), (1,), (1, 2)]


def test_a_channel_begins_below_the_first_number_that_it_carries(sender: Sender):
    publish(sender, 0, 1 << ONE, BOTH)
    assert [(post.to, post.base) for post in sender.take_posts()] == [(ONE, 0), (OTHER, 1)]


def test_what_has_no_target_but_this_host_gets_no_number(sender: Sender):
    assert publish(sender, 0, 1) == []
    assert sender.is_quiet


def test_it_is_kept_until_all_have_it(sender: Sender):
    publish(sender, 0, BOTH)
    acknowledge(sender, 1, 10, ONE)
    assert (sender.kept, sender.bytes) == (1, 4)
    acknowledge(sender, 1, 10, OTHER)
    assert (sender.kept, sender.bytes, sender.is_quiet) == (0, 0, True)


def test_what_is_not_acknowledged_is_sent_again_to_those_that_lack_it(sender: Sender):
    publish(sender, 0, BOTH)
    acknowledge(sender, 1, 10, ONE)
    sender.look(499 * MS)
    assert sender.take_again() == []
    sender.look(500 * MS)
    assert numbers(sender.take_again()) == [(1, 1 << OTHER)]
    assert sender.resent == 1


def test_what_is_named_as_missing_is_sent_again_when_it_had_time_to_come(sender: Sender):
    publish(sender, 0, *[1 << ONE] * 3)
    acknowledge(sender, 1, 10 * MS)
    acknowledge(sender, 1, 50 * MS, wanted=((1, 2),))
    assert sender.take_again() == []
    acknowledge(sender, 1, 150 * MS, wanted=((1, 2),))
    assert numbers(sender.take_again()) == [(2, 1 << ONE)]


def test_what_is_named_as_missing_does_not_wait_for_a_timeout_of_worse_times(sender: Sender):
    publish(sender, 0, 1 << ONE)
    acknowledge(sender, 1, 3000 * MS)
    publish(sender, 3000 * MS, *[1 << ONE] * 2)
    acknowledge(sender, 1, 3999 * MS, wanted=((1, 2),))
    assert sender.take_again() == []
    acknowledge(sender, 1, 4000 * MS, wanted=((1, 2),))
    assert numbers(sender.take_again()) == [(2, 1 << ONE)]
    acknowledge(sender, 1, 4300 * MS, wanted=((1, 2),))
    assert sender.take_again() == []


def test_what_came_before_the_channel_was_known_is_sent_again_at_once(sender: Sender):
    publish(sender, 0, 1 << ONE)
    sender.take_posts()
    acknowledge(sender, None, 10 * MS, token=5)
    assert [post.token for post in sender.take_posts()] == [5]
    acknowledge(sender, 0, 20 * MS)
    assert numbers(sender.take_again()) == [(1, 1 << ONE)]


def test_what_was_acknowledged_meanwhile_is_not_sent_again(sender: Sender):
    publish(sender, 0, BOTH)
    sender.look(500 * MS)
    acknowledge(sender, 1, 501 * MS, ONE)
    assert numbers(sender.take_again()) == [(1, 1 << OTHER)]


def test_what_helps_nothing_is_sent_again_later_and_later(sender: Sender):
    publish(sender, 0, *[1 << ONE] * 100)
    acknowledge(sender, 1, 10 * MS)
    count = 0
    for now_ms in range(20, 3_020, 10):  # the way of 2 leads nowhere, and 3 and 4 have come
        acknowledge(sender, 1, now_ms * MS, wanted=((1, 2),))
        sender.look(now_ms * MS)
        count += sum(each.number == 2 for each in sender.take_again())
    assert 4 <= count <= 8, "once in each timeout would be 30 times"


def test_what_a_host_has_beyond_a_hole_is_not_sent_again_when_it_says_so(sender: Sender):
    publish(sender, 0, *[1 << ONE] * 6)
    acknowledge(sender, 1, 10 * MS)
    sender.look(120 * MS)
    sender.take_again()  # all that was under way is taken to be lost
    publish(sender, 120 * MS, 1 << ONE)
    acknowledge(sender, 1, 500 * MS, wanted=((1, 2), (4, 5)))
    assert [each.number for each in sender.take_again()] == [2, 5, 6], "3 and 4 are there"


def test_a_round_trip_is_not_measured_by_what_waited_for_something_sent_again(sender: Sender):
    publish(sender, 0, 1 << ONE)
    acknowledge(sender, 1, 10 * MS)
    timeout_ns = sender.channels[0].timeout_ns
    publish(sender, 10 * MS, *[1 << ONE] * 3)
    acknowledge(sender, 1, 900 * MS, wanted=((1, 2),))
    acknowledge(sender, 4, 920 * MS)
    assert sender.channels[0].timeout_ns == timeout_ns


def test_publishers_wait_for_a_target_that_lacks_a_window():
    sender = made(window=2)
    publish(sender, 0, 1 << ONE, BOTH)
    assert sender.held == 1 << ONE
    acknowledge(sender, 1, 10)
    assert sender.held == 0


def test_publishers_wait_for_all_when_too_much_is_kept():
    sender = made(bytes=8)
    publish(sender, 0, 1 << ONE, 1 << ONE)
    assert sender.held == BOTH


def test_a_silent_host_is_asked_and_then_given_up_and_counted():
    sender = made(give_up_s=1)
    publish(sender, 0, 1 << ONE)
    acknowledge(sender, 0, 10 * MS)
    sender.take_posts()
    sender.look(300 * MS)
    assert [post.to for post in sender.take_posts()] == [ONE]
    sender.look(1009 * MS)
    assert sender.given_up == 0
    sender.look(1010 * MS)
    assert (sender.given_up, sender.kept, sender.held) == (1, 0, 0)
    assert publish(sender, 1020 * MS, BOTH)[0].targets == 1 << OTHER
    assert sender.given_up == 2


def test_a_host_that_was_given_up_is_told_when_it_is_back():
    sender = made(give_up_s=1)
    publish(sender, 0, 1 << ONE)
    sender.look(1000 * MS)
    sender.take_posts()
    acknowledge(sender, 0, 3000 * MS)
    post = sender.take_posts()[-1]
    assert (post.base, post.given_up) == (1, 1)
    acknowledge(sender, 1, 3010 * MS, given_up=1)
    assert publish(sender, 3020 * MS, 1 << ONE)[0].distances == (1,)
    acknowledge(sender, 2, 3030 * MS, given_up=1)
    assert sender.is_quiet


def test_nobody_is_given_up_for_a_silence_of_ones_own():
    sender = made(give_up_s=1)
    publish(sender, 0, 1 << ONE)
    sender.stood_still(5000 * MS)
    sender.look(5000 * MS)
    assert sender.given_up == 0


def test_a_restarted_host_gets_nothing_again_and_is_told(sender: Sender):
    publish(sender, 0, BOTH)
    sender.take_posts()
    sender.lives[ONE] = 21  # type: ignore[attr-defined]
    sender.renewed(ONE, 10)
    (post,) = sender.take_posts()
    assert (post.life, post.base, post.given_up) == (21, 1, 1)
    sender.look(500 * MS)
    assert numbers(sender.take_again()) == [(1, 1 << OTHER)]


@pytest.mark.parametrize(("life", "stream"), [(21, LIFE), (11, LIFE + 1)])
def test_acknowledgements_of_and_for_other_lives_are_nothing(
    sender: Sender, life: int, stream: int
):
    publish(sender, 0, 1 << ONE)
    sender.acknowledged(Ack(0, ONE, life, stream, 1), 10)
    assert sender.kept == 1


def test_an_acknowledgement_of_what_was_never_sent_does_no_harm(sender: Sender):
    publish(sender, 0, 1 << ONE)
    acknowledge(sender, 1000, 10)
    assert publish(sender, 20, 1 << ONE)[0].distances == (1,)
    assert sender.kept == 1
