import pytest

from octopis.core.routing import (
    Deliver,
    Enqueue,
    LinkStatus,
    LinkStatusTable,
    NotificationMessage,
    Reason,
    Stored,
    Unsubscribe,
)
from octopis.core.routing.outbox import Outbox
from support.overlays import A0, C0, ONE, TWO


@pytest.fixture
def status() -> LinkStatusTable:
    return LinkStatusTable((link, LinkStatus(link, is_icol=False)) for link in (A0, C0))


@pytest.fixture
def outbox(status: LinkStatusTable) -> Outbox:
    return Outbox(status)


def test_messages_to_one_link_are_one_effect_in_their_order(outbox: Outbox):
    outbox.send(A0, NotificationMessage(ONE), Reason.MATCH, 0)
    outbox.send(C0, NotificationMessage(ONE), Reason.MATCH, 0)
    outbox.send_all(A0, [NotificationMessage(TWO), NotificationMessage(ONE)], [Reason.MATCH] * 2, 0)
    outbox.send(A0, Unsubscribe("s"), Reason.SUBSCRIPTION, 0)
    at_a, at_c = outbox.take()
    assert at_a == Enqueue(
        A0,
        [
            NotificationMessage(ONE),
            NotificationMessage(TWO),
            NotificationMessage(ONE),
            Unsubscribe("s"),
        ],
        [Reason.MATCH, Reason.MATCH, Reason.MATCH, Reason.SUBSCRIPTION],
    )
    assert at_c == Enqueue(C0, [NotificationMessage(ONE)], [Reason.MATCH])


def test_effects_are_taken_once(outbox: Outbox):
    outbox.send(A0, NotificationMessage(ONE), Reason.MATCH, 0)
    outbox.deliver([Deliver("client", ONE, ["s"])], 1)
    outbox.add(Stored("s", A0))
    assert [type(effect) for effect in outbox.take()] == [Deliver, Stored, Enqueue]
    assert outbox.take() == []


def test_every_message_is_counted_once_by_its_kind(outbox: Outbox, status: LinkStatusTable):
    outbox.send(A0, NotificationMessage(ONE), Reason.CASE_I, 0)
    outbox.send_all(A0, [NotificationMessage(TWO), NotificationMessage(ONE)], [Reason.MATCH] * 2, 0)
    outbox.send(A0, Unsubscribe("s"), Reason.SUBSCRIPTION, 0)
    outbox.send(C0, Unsubscribe("s"), Reason.SYNC, 0)
    counters = outbox.counters
    assert counters.notification_ims == 3
    assert counters.subscription_ims == 1
    assert counters.sync_ims == 1
    assert [status[link].queue_length for link in (A0, C0)] == [4, 1]
    assert [status[link].entering for link in (A0, C0)] == [4, 1]


def test_messages_to_a_link_that_is_down_are_lost_and_counted(
    outbox: Outbox, status: LinkStatusTable
):
    status[A0].is_up = False
    outbox.send(A0, NotificationMessage(ONE), Reason.MATCH, 0)
    outbox.send_all(A0, [NotificationMessage(TWO), NotificationMessage(ONE)], [Reason.MATCH] * 2, 0)
    assert outbox.take() == []
    assert outbox.counters.lost_on_down_links == 3
    assert outbox.counters.notification_ims == 0
    assert status[A0].queue_length == 0
