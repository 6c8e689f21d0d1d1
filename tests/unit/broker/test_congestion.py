from octopis.core.wire.control import Notice
from support.live import line, overlay, ready, run_live, until

A, B, C = line(3).brokers


def test_first_congested_queue_is_told_to_all_and_the_last_one_ends_it():
    async def work() -> None:
        async with ready(overlay(line(3))) as live:
            congestion = live[A].congestion
            congestion.output_changed("one", congested=True)
            congestion.output_changed("other", congested=True)
            await until(lambda: all(each.congestion.brokers == [A] for each in live.values()))
            congestion.output_changed("one", congested=False)
            assert congestion.holds
            congestion.output_changed("other", congested=False)
            await until(lambda: not any(each.congestion.holds for each in live.values()))

    run_live(work())


def test_neighbour_whose_link_comes_up_is_told_what_holds():
    async def work() -> None:
        async with ready(overlay(line(3))) as live:
            live[A].congestion.output_changed("one", congested=True)
            await until(lambda: live[C].congestion.holds)
            live[C].congestion._notices._heard.clear()
            live[C].links[B].connection.abort("cut by the test")
            await until(lambda: live[C].congestion.brokers == [A])

    run_live(work())


def test_stranger_is_let_go():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            live[A].congestion.heard(B, Notice(C, 1, congested=True))
            assert not live[A].congestion.holds

    run_live(work())


def test_what_is_not_renewed_is_forgotten_and_publishers_go_on():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            live[A].congestion.heard(B, Notice(B, 10**18, congested=True))
            assert not live[A].may_publish
            await until(lambda: live[A].may_publish)

    run_live(work())


def test_congestion_that_lasts_is_renewed():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            live[A].congestion.output_changed("one", congested=True)
            await until(lambda: live[B].congestion.holds)
            heard = live[B].congestion._notices._heard[A]
            await until(lambda: live[B].congestion._notices._heard[A].number > heard.number)

    run_live(work())
