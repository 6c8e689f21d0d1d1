"""A disk that damages what it has synced: it is never served, and nothing else is lost."""

from pathlib import Path
from typing import Any

from octopis.broker.broker import LiveBroker
from octopis.broker.settings import Durability
from octopis.client.streams import Gap
from octopis.core.routing import Algorithm
from support.damage import flip
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until

A, B, C = line(3).brokers


def on_disk(folder: Path) -> Any:
    return overlay(line(3), Algorithm.TNR, durability=Durability(str(folder)))


def named(count: int) -> list[dict[str, str]]:
    return [{"name": f"number-{number:03d}"} for number in range(count)]


async def read_all(client: Any, name: str, last: str) -> tuple[list[str], list[Gap]]:
    gaps: list[Gap] = []
    found: list[str] = []
    async with client.subscribe(durable=name, on_gap=gaps.append) as stream:
        async for each in stream:
            found.append(each.attributes["name"])
            if found[-1] == last:
                break
    return found, gaps


def test_damage_under_a_running_broker_is_a_gap_and_all_others_are_served(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live:
            async with client_of(live[A]) as writer, client_of(live[C]) as reader:
                async with reader.subscribe("name > ''", durable="all"):
                    await tables_hold(live, 1)
                await writer.publish_many(named(100))
                await until(lambda: live[C].status()["durables"]["all"]["position"] == 100)
                flip(tmp_path / C.short, b"number-042")
                found, gaps = await read_all(reader, "all", "number-099")
                assert found == [each["name"] for each in named(100) if each["name"][-3:] != "042"]
                assert [gap.dropped for gap in gaps] == [1]

    run_live(work())


def test_damage_at_the_publishers_host_leaves_no_hole_that_others_wait_for(tmp_path: Path):
    async def work() -> None:
        configuration = on_disk(tmp_path)
        async with ready(configuration) as live:
            async with client_of(live[A]) as writer, client_of(live[C]) as reader:
                async with reader.subscribe("name > ''", durable="all"):
                    await tables_hold(live, 1)
                await live[C].stop()  # what is published now waits on the disk of its host
                await writer.publish_many(named(50))
                flip(tmp_path / A.short, b"number-007")
                again = LiveBroker(C, configuration.at({C: live[C].address}))
                await again.listen()
                again.start({})
                try:
                    await writer.publish({"name": "the last"})
                    found, gaps = await read_all(reader, "all", "the last")
                finally:
                    await again.stop()
                assert found == [
                    *(each["name"] for each in named(50) if each["name"][-3:] != "007"),
                    "the last",
                ]
                assert gaps == []
                assert live[A].status()["store"]["damages"] == 1

    run_live(work())


def test_damage_that_a_broker_finds_when_it_starts_leaves_no_hole_either(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live:
            async with client_of(live[A]) as writer, client_of(live[C]) as reader:
                async with reader.subscribe("name > ''", durable="all"):
                    await tables_hold(live, 1)
                await live[C].stop()
                await writer.publish_many(named(50))
        flip(tmp_path / A.short, b"number-030")
        async with ready(on_disk(tmp_path)) as live:
            async with client_of(live[C]) as reader, client_of(live[A]) as writer:
                assert live[A].status()["store"]["damages"] == 1
                await writer.publish({"name": "the last"})
                found, _ = await read_all(reader, "all", "the last")
                assert found == [
                    *(each["name"] for each in named(50) if each["name"][-3:] != "030"),
                    "the last",
                ]

    run_live(work())
