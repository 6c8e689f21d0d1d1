"""A user may have many clients: what all their live subscriptions take together is bounded."""

from pathlib import Path

import pytest

from octopis.broker.broker import LiveBroker
from octopis.client.client import Client
from octopis.errors import InvalidSubscription
from support.live import client_of, line, overlay, ready, run_live, until
from support.secure import Folder, client_as

SCOT = line(2)
A, B = SCOT.brokers
MINE = {"secret": "mine"}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


async def subscribed(client: Client, condition: str) -> None:
    await client.subscribe(condition).open()


def held(broker: LiveBroker) -> int:
    return len(broker.users)


def test_all_clients_of_a_user_together_have_so_many_terms_at_a_broker(folder: Folder):
    limits = {"terms_per_client": 4, "clients_per_user": 2}

    async def work() -> None:
        async with ready(folder.overlay(SCOT, limits=limits)) as live:
            alice, carol = folder.by_certificate(), folder.by_token()
            async with (
                client_as(live[A], alice) as first,
                client_as(live[A], alice) as second,
                client_as(live[A], alice) as third,
                client_as(live[B], alice) as elsewhere,
                client_as(live[A], carol) as other,
            ):
                await subscribed(first, "a = 1 AND b = 1 AND c = 1 AND d = 1")
                with pytest.raises(InvalidSubscription, match="a client has at most 4 terms"):
                    await subscribed(first, "a = 1")
                await subscribed(second, "a = 1 AND b = 1 AND c = 1")
                with pytest.raises(
                    InvalidSubscription, match="a user with all its clients has at most 8 terms"
                ):
                    await subscribed(third, "a = 1 AND b = 1")
                await subscribed(third, "a = 1")
                await subscribed(other, "a = 1 AND b = 1 AND c = 1")
                await subscribed(elsewhere, "a = 1 AND b = 1 AND c = 1")
                await second.close()
                await until(lambda: len(live[A].clients) == 3)
                await subscribed(third, "a = 1 AND b = 1 AND c = 1")
            await until(lambda: held(live[A]) == held(live[B]) == 0)

    run_live(work())


def test_where_nobody_logs_in_each_client_counts_for_itself():
    async def work() -> None:
        made = overlay(SCOT)
        async with (
            ready(made) as live,
            client_of(live[A], **MINE) as first,
            client_of(live[A], **MINE) as second,
        ):
            await subscribed(first, "a = 1")
            await subscribed(second, "a = 1")
            assert held(live[A]) == 0

    run_live(work())
