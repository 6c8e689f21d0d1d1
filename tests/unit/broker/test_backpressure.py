from octopis.broker.backpressure import Notices
from octopis.core.wire.control import Notice
from support.live import line, overlay, ready, run_live, until
from support.overlays import A0, A1, B0


def test_own_notice_is_said_when_backpressure_begins_and_ends():
    notices = Notices(A0, 100, renewal_s=1.0)
    assert notices.own(holds=False, now=0.0) is None
    assert notices.own(holds=True, now=0.0) == Notice(A0, 101, holds=True)
    assert notices.brokers
    assert notices.own(holds=True, now=0.5) is None
    assert notices.own(holds=False, now=0.6) == Notice(A0, 102, holds=False)
    assert not notices.brokers
    assert notices.own(holds=False, now=9.0) is None


def test_notice_is_renewed_as_long_as_it_holds():
    notices = Notices(A0, 0, renewal_s=1.0)
    notices.own(holds=True, now=0.0)
    assert notices.own(holds=True, now=1.0) == Notice(A0, 2, holds=True)


def test_news_is_passed_on_once():
    notices = Notices(A0, 0, renewal_s=1.0)
    assert notices.heard(Notice(B0, 5, holds=True), 0.0)
    assert not notices.heard(Notice(B0, 5, holds=True), 0.1)
    assert notices.brokers == [B0]


def test_old_news_does_not_replace_newer():
    notices = Notices(A0, 0, renewal_s=1.0)
    notices.heard(Notice(B0, 6, holds=False), 0.0)
    assert not notices.heard(Notice(B0, 5, holds=True), 0.1)
    assert not notices.brokers


def test_own_notice_that_comes_back_is_no_news():
    notices = Notices(A0, 0, renewal_s=1.0)
    assert not notices.heard(Notice(A0, 999, holds=True), 0.0)
    assert not notices.brokers


def test_notice_that_is_not_renewed_is_forgotten():
    notices = Notices(A0, 0, renewal_s=1.0)
    notices.heard(Notice(B0, 1, holds=True), 0.0)
    notices.heard(Notice(A1, 1, holds=True), 2.0)
    assert notices.expire(3.5) == [B0]
    assert notices.brokers == [A1]
    assert notices.expire(3.5) == []
    assert not notices.heard(Notice(B0, 1, holds=True), 3.6)  # a late copy
    assert notices.heard(Notice(B0, 2, holds=True), 3.7)


def test_own_notice_never_expires():
    notices = Notices(A0, 0, renewal_s=1.0)
    notices.own(holds=True, now=0.0)
    assert notices.expire(100.0) == []
    assert notices.brokers


def test_new_neighbour_is_told_what_holds():
    notices = Notices(A0, 0, renewal_s=1.0)
    notices.own(holds=True, now=0.0)
    notices.heard(Notice(B0, 7, holds=True), 0.0)
    notices.heard(Notice(A1, 3, holds=False), 0.0)
    assert notices.holding() == [Notice(A0, 1, holds=True), Notice(B0, 7, holds=True)]


A, B, C = line(3).brokers


def test_first_queue_past_its_mark_is_told_to_all_and_the_last_one_ends_it():
    async def work() -> None:
        async with ready(overlay(line(3))) as live:
            backpressure = live[A].backpressure
            backpressure.output_changed("one", True)
            backpressure.output_changed("other", True)
            await until(lambda: all(each.backpressure.brokers == [A] for each in live.values()))
            backpressure.output_changed("one", False)
            assert backpressure.brokers
            backpressure.output_changed("other", False)
            await until(lambda: not any(each.backpressure.brokers for each in live.values()))

    run_live(work())


def test_neighbour_whose_link_comes_up_is_told_what_holds():
    async def work() -> None:
        async with ready(overlay(line(3))) as live:
            live[A].backpressure.output_changed("one", True)
            await until(lambda: live[C].backpressure.brokers)
            live[C].backpressure._notices._heard.clear()
            live[C].backpressure.brokers = []
            live[C].links[B].connection.abort("cut by the test")
            await until(lambda: live[C].backpressure.brokers == [A])

    run_live(work())


def test_stranger_is_let_go():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            live[A].backpressure.heard(B, Notice(C, 1, holds=True))
            assert not live[A].backpressure.brokers

    run_live(work())


def test_what_is_not_renewed_is_forgotten_and_publishers_go_on():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            live[A].backpressure.heard(B, Notice(B, 10**18, holds=True))
            assert not live[A].intake.may_publish
            await until(lambda: live[A].intake.may_publish)

    run_live(work())


def test_backpressure_that_lasts_is_renewed():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            live[A].backpressure.output_changed("one", True)
            await until(lambda: live[B].backpressure.brokers)
            heard = live[B].backpressure._notices._heard[A]
            await until(lambda: live[B].backpressure._notices._heard[A].number > heard.number)

    run_live(work())
