"""What waits for a client that reads nothing is bounded, also where it reads from disk."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from octopis.broker.settings import Durability
from octopis.core.filters import parse_filter as parsed
from octopis.core.routing import Algorithm
from octopis.core.wire.durable import ReadDurable, encode_durable_request
from octopis.errors import InvalidSubscription
from support.live import LIMITS, client_of, line, overlay, raw_client, ready, run_live, until

(HERE,) = line(1).brokers


def test_who_reads_from_disk_and_not_from_its_socket_is_sent_away(tmp_path: Path):
    async def work() -> None:
        made = overlay(line(1), Algorithm.TNR, durability=Durability(str(tmp_path)))
        async with ready(made) as live, client_of(live[HERE]) as writer:
            await writer.open_durable("all", parsed("n >= 0"))
            await writer.publish_many(({"n": n}, b"x" * 100_000) for n in range(10))
            async with raw_client(live[HERE]) as greedy:
                session = live[HERE].clients["raw"]
                ask = encode_durable_request(ReadDurable(1, "all", 0, shared=True))
                answered, tell, most = [], session.tell, 0

                def told(frame: bytes) -> None:
                    answered.append(len(frame))
                    tell(frame)

                session.tell = told
                for number in range(200):
                    if session.connection.is_closing:
                        break
                    await greedy.send(ask)
                    await until(lambda n=number: len(answered) > n)  # one is under way at a time
                    most = max(most, session._answers.bytes)
                assert session.connection.is_closing
                assert 60e6 < most < 70e6
            await writer.publish({"n": 1})

    run_live(work())


def test_an_owner_has_only_so_many_durable_subscriptions(tmp_path: Path):
    async def work() -> None:
        limits = replace(LIMITS, subscriptions_per_client=3)
        made = overlay(line(1), Algorithm.TNR, limits=limits, durability=Durability(str(tmp_path)))
        async with ready(made) as live, client_of(live[HERE], secret=str(tmp_path)) as mine:
            for name in "abc":
                await mine.open_durable(name, parsed("n >= 0"))
            with pytest.raises(InvalidSubscription, match="has at most 3"):
                await mine.open_durable("d", parsed("n >= 0"))
            await mine.open_durable("a")
            async with client_of(live[HERE]) as other:
                await other.open_durable("d", parsed("n >= 0"))

    run_live(work())
