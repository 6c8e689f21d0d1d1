"""Whatever roles change to, and when: nobody is sent what its role does not allow at that moment.

All brokers run in this process, so what is written to a subscriber is looked at in the moment in
which it is written, by the role that there is then.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.msgpack import decode

from octopis.broker.clients import deliveries
from octopis.broker.disk import reads
from octopis.broker.settings import Durability
from octopis.client.client import Client
from octopis.core.routing import Algorithm
from octopis.core.wire.published import attributes_of
from octopis.errors import ConnectionLost, InvalidSubscription, NotPermitted
from support.live import Brokers, line, overlay, ready, run_live, until
from support.roles import ALL, Roles, as_user, by_name, role

A, B = line(2).brokers
GUARDS = ["TRUE", "n < 50", "n >= 50", "kind = 'x'", "NOT (n = 3)", "FALSE"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 99)),
        st.tuples(st.just("change"), st.integers(0, len(GUARDS) - 1)),
        st.tuples(st.just("read"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.integers(0, 20)),
    ),
    min_size=4,
    max_size=25,
)


class Witness:
    """Looks at all that is written to alice."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self.seen: list[int] = []
        self.forbidden: list[tuple[str, object]] = []

    def look(self, body: bytes) -> None:
        attributes = attributes_of(body)
        guard = self._roles.identity("alice").permissions.subscribe
        self.seen.append(attributes["n"])  # type: ignore[arg-type]
        if not guard.matches(attributes):
            self.forbidden.append((str(guard), attributes))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        write, encode_batch = deliveries._write, reads.encode_batch

        def delivered(connection, dropped, items):  # type: ignore[no-untyped-def]
            for item in items:
                numbers = decode(item)[0]
                head = 1 + len(deliveries.encode_delivery(numbers, b"")) - 1
                self.look(item[head:])
            return write(connection, dropped, items)

        def read(*about):  # type: ignore[no-untyped-def]
            for _, body in about[-1]:
                self.look(body)
            return encode_batch(*about)

        with (
            patch.object(deliveries, "_write", delivered),
            patch.object(reads, "encode_batch", read),
        ):
            yield


async def follow(alice: Client) -> None:
    """Subscribe again and again: a role may have ended it."""
    while True:
        with suppress(NotPermitted, InvalidSubscription, ConnectionLost):
            async with alice.subscribe("n >= 0", names=["s"]) as stream:
                async for _ in stream:
                    pass
        await asyncio.sleep(0.001)


async def read(alice: Client, after: int) -> None:
    with suppress(NotPermitted, InvalidSubscription, ConnectionLost):
        await alice.open_durable("d")
        await alice.read("d", after, wait_s=0.01)


def permissions(guard: str) -> object:
    return role(subscribe=guard, is_durable=True)


async def run(steps: list[tuple[str, int]], live: Brokers, roles: Roles) -> None:
    tasks: list[asyncio.Task[object]] = []
    async with (
        as_user(live[A], "writer") as here,
        as_user(live[B], "writer", "other") as there,
        as_user(live[B], "alice") as alice,
    ):
        follower = asyncio.create_task(follow(alice))
        await alice.open_durable("d", parsed("n >= 0"))
        for number, (what, value) in enumerate(steps):
            if what == "publish":
                writer = here if number % 2 else there
                what_is_published = {"n": value} | ({"kind": "x"} if value % 3 else {})
                tasks.append(asyncio.create_task(writer.publish(what_is_published)))
            elif what == "change":
                roles.change(live, alice=permissions(GUARDS[value]))  # type: ignore[arg-type]
            elif what == "read":
                tasks.append(asyncio.create_task(read(alice, value)))
            for _ in range(value if what == "wait" else number % 3):
                await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        await comes_at_last(live, roles, here)
        follower.cancel()
        await asyncio.gather(follower, return_exceptions=True)


async def comes_at_last(live: Brokers, roles: Roles, writer: Client) -> None:
    """What is allowed comes: nobody is shut out for ever."""
    roles.change(live, alice=permissions("n < 1000"))  # type: ignore[arg-type]

    def is_known() -> bool:
        known = [str(each.subscription.filter) for each in live[A].core.table]
        return "n >= 0 AND n < 1000" in known

    await until(is_known)
    await writer.publish({"n": 999})


def parsed(text: str):  # type: ignore[no-untyped-def]
    from octopis.core.filters import parse_filter  # noqa: PLC0415

    return parse_filter(text)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_nobody_is_sent_what_its_role_does_not_allow_at_that_moment(
    steps: list[tuple[str, int]],
):
    async def work(folder: str) -> None:
        roles = Roles(alice=permissions("TRUE"), writer=ALL)  # type: ignore[arg-type]
        witness = Witness(roles)
        made = overlay(line(2), Algorithm.TNR, durability=Durability(folder))
        with by_name(roles), witness.at_work():
            async with ready(made) as live:
                await run(steps, live, roles)
                await until(lambda: 999 in witness.seen)
        assert witness.forbidden == []

    with TemporaryDirectory() as folder:
        run_live(work(folder))
