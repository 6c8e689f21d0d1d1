from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.overlay.player import Play
from octopis.overlay.status import Statuses, totals
from octopis.scenario.costs import profile_named
from octopis.scenario.example import write_example
from octopis.scenario.folder import Scenario, read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.simulator.run import run
from support.live import client_of, overlay, ready, run_live

FIGURE_3 = from_catalogue("figure-3")


def scenario(folder: Path) -> Scenario:
    plan = ScenarioPlan(
        routing=RoutingOptions(Algorithm.SNR),
        name="small",
        topology=FIGURE_3,
        profile=profile_named("octopis"),
        subscribers=20,
        publishers=3,
        notifications_each=30,
        per_minute=6_000,
        seed=3,
    )
    write_example(plan, folder)
    return read_scenario(folder)


def test_live_and_simulated_runs_deliver_the_same_with_the_same_messages(tmp_path: Path):
    loaded = scenario(tmp_path / "scenario")
    simulated = run(loaded, tmp_path / "simulated")

    async def work() -> None:
        async with ready(overlay(FIGURE_3.scot)) as live:
            addresses = {broker.short: str(each.address) for broker, each in live.items()}
            phases: set[str] = set()
            play = Play(loaded, addresses, speed=2.0, progress=lambda phase, *_: phases.add(phase))
            played = await play.run()
        assert played.notifications == 90
        assert played.counters["notification_ims"] == simulated.notification_ims > 0
        assert played.counters["subscription_ims"] == simulated.subscription_ims
        assert played.gaps == []
        assert len(played.delays_ns) == len(played.deliveries)
        assert min(played.delays_ns) > 0
        table = pq.read_table(tmp_path / "simulated" / "deliveries.parquet").to_pylist()
        names = ("publisher", "sequence", "subscription")
        wanted = Counter(tuple(row[name] for name in names) for row in table)
        assert Counter(played.deliveries) == wanted
        assert phases == {"clients", "subscriptions", "notifications", "deliveries"}

    run_live(work())


def test_whoever_watches_is_told_how_brokers_are_while_notifications_are_published(tmp_path: Path):
    loaded = scenario(tmp_path)
    seen: list[int] = []

    async def work() -> None:
        async with ready(overlay(FIGURE_3.scot)) as live:
            addresses = {broker.short: str(each.address) for broker, each in live.items()}

            def watch(statuses: Statuses) -> None:
                assert set(statuses) == set(addresses)
                seen.append(totals(statuses)["published"])

            played = await Play(loaded, addresses, speed=2.0, watch=watch).run()
            assert played.begin_ns < min(played.delivered_ns)
            assert len(played.delivered_ns) == len(played.deliveries)

    run_live(work())
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 90)
    assert any(0 < each < 90 for each in seen)


def test_broker_that_does_not_answer_is_noticed_while_somebody_watches(tmp_path: Path):
    loaded = scenario(tmp_path)

    async def work() -> None:
        async with ready(overlay(FIGURE_3.scot)) as live:
            addresses = {broker.short: str(each.address) for broker, each in live.items()}
            play = Play(loaded, addresses, watch=lambda _: None)
            settled = play._settled

            async def settled_and_gone(before) -> None:
                await settled(before)
                play._addresses = {**addresses, "a,0": "127.0.0.1:1"}

            play._settled = settled_and_gone  # type: ignore[method-assign]
            with pytest.raises(OperationFailed, match="a,0: "):
                await play.run()

    run_live(work())


def test_scenario_for_another_overlay_is_refused(tmp_path: Path):
    with pytest.raises(InvalidConfiguration, match="not for this overlay with 1"):
        Play(scenario(tmp_path), {"a,0": "127.0.0.1:7400"})


def test_somebody_else_who_publishes_is_noticed(tmp_path: Path):
    loaded = scenario(tmp_path)

    async def work() -> None:
        async with ready(overlay(FIGURE_3.scot)) as live:
            addresses = {broker.short: str(each.address) for broker, each in live.items()}
            async with client_of(next(iter(live.values()))) as other:
                batch = next(loaded.publications())

                async def meddle() -> None:
                    await other.publish_many(batch.attributes)

                play = Play(loaded, addresses)
                settled = play._settled

                async def settled_and_meddled(before) -> None:
                    await settled(before)
                    await meddle()

                play._settled = settled_and_meddled  # type: ignore[method-assign]
                with pytest.raises(OperationFailed, match="a play needs the overlay for itself"):
                    await play.run()

    run_live(work())
