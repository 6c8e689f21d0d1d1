from octopis.broker.backpressure import Notices
from octopis.core.wire.control import Notice
from support.overlays import A0, A1, B0


def test_own_notice_is_said_when_congestion_begins_and_ends():
    notices = Notices(A0, 100, renewal_s=1.0)
    assert notices.own(congested=False, now=0.0) is None
    assert notices.own(congested=True, now=0.0) == Notice(A0, 101, congested=True)
    assert notices.is_congested
    assert notices.own(congested=True, now=0.5) is None
    assert notices.own(congested=False, now=0.6) == Notice(A0, 102, congested=False)
    assert not notices.is_congested
    assert notices.own(congested=False, now=9.0) is None


def test_congestion_that_lasts_is_renewed():
    notices = Notices(A0, 0, renewal_s=1.0)
    notices.own(congested=True, now=0.0)
    assert notices.own(congested=True, now=1.0) == Notice(A0, 2, congested=True)


def test_news_is_passed_on_once():
    notices = Notices(A0, 0, renewal_s=1.0)
    assert notices.heard(Notice(B0, 5, congested=True), 0.0)
    assert not notices.heard(Notice(B0, 5, congested=True), 0.1)
    assert notices.congested == [B0]


def test_old_news_does_not_replace_newer():
    notices = Notices(A0, 0, renewal_s=1.0)
    notices.heard(Notice(B0, 6, congested=False), 0.0)
    assert not notices.heard(Notice(B0, 5, congested=True), 0.1)
    assert not notices.is_congested


def test_own_notice_that_comes_back_is_no_news():
    notices = Notices(A0, 0, renewal_s=1.0)
    assert not notices.heard(Notice(A0, 999, congested=True), 0.0)
    assert not notices.is_congested


def test_notice_that_is_not_renewed_is_forgotten():
    notices = Notices(A0, 0, renewal_s=1.0)
    notices.heard(Notice(B0, 1, congested=True), 0.0)
    notices.heard(Notice(A1, 1, congested=True), 2.0)
    assert notices.expire(3.5) == [B0]
    assert notices.congested == [A1]
    assert notices.expire(3.5) == []
    assert not notices.heard(Notice(B0, 1, congested=True), 3.6)  # a late copy
    assert notices.heard(Notice(B0, 2, congested=True), 3.7)


def test_own_notice_never_expires():
    notices = Notices(A0, 0, renewal_s=1.0)
    notices.own(congested=True, now=0.0)
    assert notices.expire(100.0) == []
    assert notices.is_congested


def test_new_neighbour_is_told_what_holds():
    notices = Notices(A0, 0, renewal_s=1.0)
    notices.own(congested=True, now=0.0)
    notices.heard(Notice(B0, 7, congested=True), 0.0)
    notices.heard(Notice(A1, 3, congested=False), 0.0)
    assert notices.holding() == [Notice(A0, 1, congested=True), Notice(B0, 7, congested=True)]
