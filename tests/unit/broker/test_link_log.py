from octopis.broker.link_log import LinkLog, Row
from octopis.broker.settings import LinkPolicy
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing import Algorithm, Message, NotificationMessage, Reason
from octopis.core.routing.messages import TableSnapshot, Unsubscribe
from octopis.core.wire.published import Published
from octopis.trace.schemas import IMS, LINKS

A, B = BrokerId("a", 0), BrokerId("b", 0)
SYNC = TableSnapshot(())


def log(policy: LinkPolicy = LinkPolicy.DROP_NEWEST) -> tuple[LinkLog, list[Row]]:
    rows: list[Row] = []
    made = LinkLog(
        A, B, kind="aCOL", clusters=3, algorithm=Algorithm.DNR, policy=policy, write=rows.extend
    )
    return made, rows


def routed(sequence: int, cbv_p: int = 0) -> Message:
    return NotificationMessage(Published({}, b"", "p", sequence), ClusterBitVector(cbv_p))


def named(row: Row) -> dict[str, object]:
    return dict(zip(IMS.names, row, strict=True))


def test_row_says_what_the_message_was_and_when_it_came_and_left():
    made, rows = log()
    made.enqueued([SYNC], [Reason.SYNC], 5)
    made.enqueued([routed(7, 0b110), Unsubscribe("s")], [Reason.CASE_I, Reason.SUBSCRIPTION], 10)
    made.left(3, 40)
    sync, notification, ending = map(named, rows)
    assert (sync["message"], sync["publisher"], sync["queue_length"]) == ("sync", None, 0)
    assert notification == {
        "source": "a,0",
        "target": "b,0",
        "link_kind": "aCOL",
        "message": "notification",
        "publisher": "p",
        "sequence": 7,
        "subscription": None,
        "enqueued_ns": 10,
        "left_ns": 40,
        "queue_length": 1,
        "cbv_p": "110",
        "bids": None,
        "reason": "I",
        "hops": None,
        "fate": "left",
    }
    assert (ending["message"], ending["subscription"]) == ("subscription", "s")


def test_drops_are_from_the_end_that_the_policy_says_and_never_of_tables():
    for policy, dropped, kept in (
        (LinkPolicy.DROP_NEWEST, [3, 2], [1, None]),
        (LinkPolicy.DROP_OLDEST, [1, 2], [None, 3]),
    ):
        made, rows = log(policy)
        messages = [routed(1), SYNC, routed(2), routed(3)]
        if policy is LinkPolicy.DROP_NEWEST:
            messages = [routed(1), routed(2), SYNC, routed(3)]
        reasons = [Reason.SYNC if each is SYNC else Reason.MATCH for each in messages]
        made.enqueued(messages, reasons, 10)
        made.lost(2, 20)
        assert [named(row)["sequence"] for row in rows] == dropped
        assert {named(row)["fate"] for row in rows} == {"dropped"}
        rows.clear()
        made.left(2, 30)
        assert [named(row)["sequence"] for row in rows] == kept
        assert (made.dropped, made.first_dropped_ns) == (2, 20)


def test_link_that_goes_down_cuts_what_waits():
    made, rows = log()
    made.enqueued([routed(1), routed(2)], [Reason.MATCH] * 2, 10)
    made.left(1, 15)
    made.went_down(20)
    assert [named(row)["fate"] for row in rows] == ["left", "cut"]
    assert dict(zip(LINKS.names, made.summed(), strict=True)) == {
        "source": "a,0",
        "target": "b,0",
        "link_kind": "aCOL",
        "subscription_ims": 0,
        "notification_ims": 2,
        "queue_length_max": 2,
        "waited_ns": 2 * 5 + 5,
        "dropped": 0,
        "cut": 1,
        "high_rate_ims": None,
    }


def test_sums_are_kept_where_no_rows_are_wanted():
    made = LinkLog(
        A,
        B,
        kind="aCOL",
        clusters=3,
        algorithm=Algorithm.SNR,
        policy=LinkPolicy.DROP_NEWEST,
        write=None,
    )
    made.enqueued([routed(1)], [Reason.MATCH], 10)
    made.left(1, 30)
    assert (made.waited_ns, made.length_max, made.ims["notification"]) == (20, 1, 1)
