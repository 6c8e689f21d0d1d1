import asyncio

import pytest

from octopis.broker.links.backpressure import hosts_behind, targets_behind
from octopis.broker.links.notices import Notices
from octopis.core.routing import Algorithm
from octopis.core.wire.control import Notice
from octopis.errors import ProtocolError
from support.live import PLAIN, client_of, line, overlay, ready, run_live, tables_hold, until
from support.overlays import A0, A1, B0


def test_own_notice_is_said_when_backpressure_begins_and_ends():
    notices = Notices(A0, 1.0, "one")
    assert notices.own(holds=False, now=0.0) is None
    assert notices.own(holds=True, now=0.0) == Notice(A0, "one", 1, holds=True)
    assert notices.brokers
    assert notices.own(holds=True, now=0.5) is None
    assert notices.own(holds=False, now=0.6) == Notice(A0, "one", 2, holds=False)
    assert not notices.brokers
    assert notices.own(holds=False, now=9.0) is None


def test_notice_is_renewed_as_long_as_it_holds():
    notices = Notices(A0, 1.0, "one")
    notices.own(holds=True, now=0.0)
    assert notices.own(holds=True, now=1.0) == Notice(A0, "one", 2, holds=True)


def test_news_is_passed_on_once():
    notices = Notices(A0, 1.0, "one")
    assert notices.heard(Notice(B0, "one", 5, holds=True), 0.0)
    assert not notices.heard(Notice(B0, "one", 5, holds=True), 0.1)
    assert notices.brokers == [B0]


def test_old_news_does_not_replace_newer():
    notices = Notices(A0, 1.0, "one")
    notices.heard(Notice(B0, "one", 6, holds=False), 0.0)
    assert not notices.heard(Notice(B0, "one", 5, holds=True), 0.1)
    assert not notices.brokers


def test_own_notice_that_comes_back_is_no_news():
    notices = Notices(A0, 1.0, "one")
    said = notices.own(holds=True, now=0.0)
    assert said is not None
    assert notices.heard(said, 0.1) is None
    assert notices.brokers == [A0]


@pytest.mark.parametrize(
    "forged", [Notice(A0, "one", 2**62, holds=True), Notice(A0, "x", 1, holds=True)]
)
def test_nobody_else_has_the_last_word_about_a_broker(forged: Notice):
    own, other = Notices(A0, 1.0, "one"), Notices(B0, 1.0, "two")
    assert other.heard(forged, 0.0) == forged
    answer = own.heard(forged, 0.0)
    assert answer is not None
    assert not answer.holds
    assert other.heard(answer, 0.1) == answer
    assert not other.brokers
    later = own.own(holds=True, now=0.2)
    assert later is not None
    assert other.heard(later, 0.3) == later


def test_broker_that_starts_again_is_heard_whatever_its_clock_says():
    notices = Notices(A0, 1.0)
    assert notices.heard(Notice(B0, "before", 10**15, holds=True), 0.0)
    after = Notice(B0, "after", 1, holds=False)
    assert notices.heard(after, 0.1) == after
    assert not notices.brokers
    assert notices.heard(Notice(B0, "before", 10**15 + 1, holds=True), 0.2) is None  # a late copy
    assert not notices.brokers


def test_notice_that_is_not_renewed_is_forgotten():
    notices = Notices(A0, 1.0, "one")
    notices.heard(Notice(B0, "one", 1, holds=True), 0.0)
    notices.heard(Notice(A1, "one", 1, holds=True), 2.0)
    assert notices.expire(3.5) == [B0]
    assert notices.brokers == [A1]
    assert notices.expire(3.5) == []
    assert not notices.heard(Notice(B0, "one", 1, holds=True), 3.6)  # a late copy
    assert notices.heard(Notice(B0, "one", 2, holds=True), 3.7)


def test_own_notice_never_expires():
    notices = Notices(A0, 1.0, "one")
    notices.own(holds=True, now=0.0)
    assert notices.expire(100.0) == []
    assert notices.brokers


def test_new_neighbour_is_told_what_holds():
    notices = Notices(A0, 1.0, "one")
    notices.own(holds=True, now=0.0)
    notices.heard(Notice(B0, "one", 7, holds=True), 0.0)
    notices.heard(Notice(A1, "one", 3, holds=False), 0.0)
    assert notices.holding() == [Notice(A0, "one", 1, holds=True), Notice(B0, "one", 7, holds=True)]


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


def test_notice_about_a_stranger_is_refused():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            with pytest.raises(ProtocolError, match="not in this overlay"):
                live[A].backpressure.heard(B, Notice(C, "one", 1, holds=True))
            assert not live[A].backpressure.brokers

    run_live(work())


def test_what_is_not_renewed_is_forgotten_and_publishers_go_on():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            live[A].backpressure.heard(B, Notice(B, "one", 10**18, holds=True))
            assert not live[A].intake.may_publish
            await until(lambda: live[A].intake.may_publish)

    run_live(work())


def test_backpressure_that_lasts_is_renewed():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            live[A].backpressure.output_changed("one", True)
            await until(lambda: live[B].backpressure.brokers)
            number = live[B].backpressure._notices._heard[A].notice.number
            await until(lambda: live[B].backpressure._notices._heard[A].notice.number > number)

    run_live(work())


TREE = line(3, 2)
A0_, A1_, B0_, B1_, C0_, C1_ = TREE.brokers


@pytest.mark.parametrize(
    ("start", "stuck", "hosts"),
    [
        (A0_, (B0_, C0_), {C0_}),  # along the tree
        (A1_, (B0_, C0_), {C0_}),  # after changing clusters at once
        (C0_, (B0_, C0_), set()),  # the other way
        (A0_, (B1_, C1_), {C1_}),
        (A0_, (A0_, A1_), {A1_, B1_, C1_}),  # the only place to change clusters
        (A0_, (B0_, B1_), set()),
        (A0_, (C1_, C1_), {C1_}),  # a client there
    ],
)
def test_hosts_behind_a_link_are_those_whose_notifications_take_it(start, stuck, hosts):
    assert hosts_behind(TREE, start, *stuck) == hosts


@pytest.mark.parametrize(
    ("start", "stuck", "hosts"),
    [
        (A0_, (B0_, C0_), {C0_, C1_}),  # it may change clusters behind the link
        (A1_, (B0_, C0_), {C0_}),  # or have done so before it
        (C0_, (B0_, C0_), set()),
        (A0_, (A0_, A1_), {A1_, B1_, C1_}),
        (A0_, (B0_, B1_), {B1_, C1_}),
        (A0_, (B1_, B0_), set()),
        (A0_, (C1_, C1_), {C1_}),
    ],
)
def test_targets_behind_a_link_are_those_with_a_shortest_way_over_it(start, stuck, hosts):
    assert targets_behind(TREE, start, *stuck) == hosts


@pytest.mark.parametrize("algorithm", [Algorithm.SNR, Algorithm.TNR])
def test_only_what_goes_over_a_stuck_link_waits(algorithm: Algorithm):
    async def work() -> None:
        scot = line(3)
        first, middle, last = scot.brokers
        async with (
            ready(overlay(scot, algorithm, delivery=PLAIN)) as live,
            client_of(live[middle]) as reader,
            client_of(live[last]) as far,
            client_of(live[first]) as one,
            client_of(live[first]) as other,
            reader.subscribe("near > 0") as near_ones,
            far.subscribe("far > 0") as far_ones,
        ):
            await tables_hold(live, 2)
            link = live[middle].links[last]
            live[middle].backpressure.output_changed(link, True)
            await until(lambda: live[first].backpressure.held == {last})
            waits = asyncio.create_task(one.publish_many([{"near": 1}, {"far": 1}, {"near": 2}]))
            for number in range(3, 50):
                await other.publish({"near": number})
            assert not waits.done()
            got = [(await anext(near_ones)).attributes["near"] for _ in range(48)]
            assert sorted(got) == [1, *range(3, 50)]  # not 2: it stands behind what waits
            live[middle].backpressure.output_changed(link, False)
            assert await waits == 3
            assert (await anext(far_ones)).attributes == {"far": 1}
            assert (await anext(near_ones)).attributes == {"near": 2}

    run_live(work())
