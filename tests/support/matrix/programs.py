"""Paths of programs: the client with async, the one without, and what goes through a disk."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import uvloop

from octopis import Client, connect
from octopis.client.moving import Move
from octopis.core.filters import parse_filter
from octopis.core.wire.durable import AckDurable, OpenDurable, ReadDurable
from octopis.core.wire.moving import CopyDurable, LeaveDurable
from octopis.errors import InvalidSubscription, OctopisError
from support.matrix.ground import SAMPLES, STRANGERS, Ground, Person
from support.matrix.path import (
    WIDE,
    Path,
    Probe,
    on_anothers,
    own_durable,
    publishing,
    taken,
)
from support.matrix.refusals import check_refusal, may

LIMIT_S = 30.0
SECRET = "known to everybody"  # noqa: S105 - of a test
Work = Callable[[Client], Coroutine[Any, Any, Any]]


def client_of(person: Person, url: str = "", **options: Any) -> Client:
    """Return a client of somebody's, which does not come back where it is cut off."""
    about = {"credentials": person.credentials, "reconnect_s": 0, "connect_s": 10.0}
    return connect(url or person.url, **{**about, **options})


def done(person: Person, work: Work) -> Any:
    """Do something as a client of somebody's."""

    async def whole() -> Any:
        async with asyncio.timeout(LIMIT_S), client_of(person) as client:
            return await work(client)

    return uvloop.run(whole())


def asked(work: Work) -> Probe:
    """Return a verb that is a request of the client."""
    return lambda _, person: may(lambda: done(person, work))


async def list_others(client: Client) -> None:
    """List durable subscriptions, and raise unless one of somebody else is among them."""
    if not any(each.name.startswith("victim/") for each in await client.durables()):
        raise InvalidSubscription("there is no durable subscription of others", "victim/")


class Async(Path):
    """`octopis.connect`: live streams, status, staged batches, and names of others."""

    def probes(self) -> Mapping[str, Probe]:
        return {
            **publishing(lambda _, who, said: done(who, lambda each: each.publish(said))),
            "see the status": asked(lambda client: client.status()),
            "list durables": asked(lambda client: client.durables()),
            "list durables of others": asked(list_others),
            "stage an offer": staging({"kind": "offer"}),
            "stage a secret": staging({"kind": "secret"}),
            "take a name": taking(name=True),
            "take a session": taking(name=False),
        }

    def look(self, ground: Ground, person: Person) -> set[str]:
        async def work(client: Client) -> set[str]:
            async with client.subscribe(*WIDE) as stream:
                return await seen_of(ground, client, stream)

        return done(person, work)


async def seen_of(ground: Ground, client: Client, stream: Any) -> set[str]:
    """Have the samples published, and return which come."""
    await client.settled()
    cell, seen = ground.cell(), set[str]()
    await asyncio.to_thread(ground.publish_samples, cell)
    async for each in stream:
        if taken(each.attributes, cell, seen):
            break
    return seen


def staging(attributes: dict[str, Any]) -> Probe:
    """Return the verb that stages a row, and commits it: allowed is what arrives."""

    def tried(ground: Ground, person: Person) -> bool:
        cell = ground.cell()

        async def work(client: Client) -> None:
            await client.stage(f"q{cell}", 0, 0, 0, [{**attributes, "cell": cell}])
            await client.commit_staged(f"q{cell}", 0, [(0, 0, 1)])

        said = may(lambda: done(person, work))
        assert len(ground.arrived(cell, person)) == said
        return said

    return tried


def taking(*, name: bool) -> Probe:
    """Return the verb that comes in as the victim's client: with its name and secret, or session.

    Allowed: it goes on with the victim's session, or the victim loses its own.
    """

    def tried(ground: Ground, person: Person) -> bool:
        return uvloop.run(_take(ground, person, client_id=f"app-{ground.cell()}", by_name=name))

    return tried


async def _take(ground: Ground, person: Person, client_id: str, *, by_name: bool) -> bool:
    about = {"client_id": client_id, "secret": SECRET}
    victim = client_of(ground.person("victim"), **about)
    async with asyncio.timeout(LIMIT_S), victim, victim.subscribe("x = 1", names=[client_id]):
        before = victim._connection
        assert before is not None
        thief = client_of(person, **about)
        if not by_name:
            thief._session = victim._session
        came, resumed = await _comes_in(thief, client_id)
        assert came or not resumed
        await asyncio.sleep(0.05)
        lost = before.lost.done() or victim._connection is not before
        if not lost:
            await victim.publish({"x": 1})
        return resumed or lost


async def _comes_in(thief: Client, subscription: str) -> tuple[bool, bool]:
    """Connect, and ask for the subscription; tell whether that went, and a session went on."""
    came = resumed = False
    try:
        await thief.open()
        came = True
        assert thief._connection is not None
        resumed = thief._connection.welcome.result().resumed
        async with thief.subscribe("x = 1", names=[subscription]):
            pass
    except OctopisError as failure:
        check_refusal(failure)
    finally:
        await thief.close()
    return came, resumed


class Sync(Path):
    """`octopis.connect_sync`: the same, blocking."""

    def probes(self) -> Mapping[str, Probe]:
        def publish(ground: Ground, person: Person, said: dict[str, Any]) -> None:
            with ground.sync(person) as client:
                client.publish_many([said])

        def status(ground: Ground, person: Person) -> None:
            with ground.sync(person) as client:
                client.status()

        def durables(ground: Ground, person: Person) -> None:
            with ground.sync(person) as client:
                client.durables()

        return {
            **publishing(publish),
            "see the status": lambda ground, person: may(lambda: status(ground, person)),
            "list durables": lambda ground, person: may(lambda: durables(ground, person)),
        }

    def look(self, ground: Ground, person: Person) -> set[str]:
        seen: set[str] = set()
        with ground.sync(person) as client, client.subscribe(*WIDE) as stream:
            client.settled()
            cell = ground.cell()
            ground.publish_samples(cell)
            for each in stream:
                if taken(each.attributes, cell, seen):
                    break
        return seen


class Durable(Path):
    """A durable subscription, read as a stream; and all that can be done to one."""

    is_lasting = True

    def probes(self) -> Mapping[str, Probe]:
        acts: dict[str, Callable[[Person, str], object]] = {
            "open": lambda who, name: done(who, lambda each: each.open_durable(name)),
            "read": lambda who, name: done(who, lambda each: each.read(name, 0, wait_s=10)),
            "acknowledge": lambda who, name: done(who, lambda each: _acknowledge(each, name)),
            "drop": lambda who, name: done(who, lambda each: each.drop_durable(name)),
            "move": lambda who, name: done(who, lambda each: each.ask_durable(*_leave(name))),
        }
        found: dict[str, Probe] = {}
        for verb, act in acts.items():
            found[f"{verb} own"] = _on_own(act) if verb != "move" else moving_own
            found[f"{verb} another's"] = on_anothers(lambda _, who, name, act=act: act(who, name))
        found["share another's"] = on_anothers(lambda _, who, name: done(who, _sharing(name)))
        return found

    def look(self, ground: Ground, person: Person) -> set[str]:
        async def work(client: Client) -> set[str]:
            name, wide = f"look-{ground.cell()}", " OR ".join(f"({each})" for each in WIDE)
            async with client.subscribe(wide, durable=name) as stream:
                return await seen_of(ground, client, stream)

        return done(person, work)


def _on_own(act: Callable[[Person, str], object]) -> Probe:
    return lambda ground, person: may(lambda: act(person, own_durable(ground, person)))


async def _acknowledge(client: Client, name: str) -> None:
    epoch = next((each.epoch for each in await client.durables() if each.name == name), 1)
    await client.ack(name, epoch, 1)


def _leave(name: str) -> tuple[Any, ...]:
    return LeaveDurable, name, "b,0", 1, True


def _sharing(name: str) -> Work:
    """Return requests that say of another's that it is shared, as where there is no security."""

    async def work(client: Client) -> None:
        outcomes = []
        for request, *facts in (
            (ReadDurable, name, 0, 10, 0, True),
            (OpenDurable, name, None, "sql", None, True),
            (CopyDurable, name, 0, True),
            (AckDurable, name, 1, 1, True),
        ):
            try:
                outcomes.append(await client.ask_durable(request, *facts))
            except InvalidSubscription as failure:
                refusal = failure
        if not outcomes:
            raise refusal

    return work


def moving_own(ground: Ground, person: Person) -> bool:
    """Move one of this person's to another broker, with clients at all of them."""
    name = own_durable(ground, person)

    async def work() -> None:
        async with asyncio.timeout(LIMIT_S), _everywhere(ground, person) as clients:
            async for _ in Move(clients, name, "a,1").run():
                pass

    return may(lambda: uvloop.run(work()))


@asynccontextmanager
async def _everywhere(ground: Ground, person: Person) -> AsyncIterator[dict[str, Client]]:
    urls = {"a,1": person.url} if person.name in STRANGERS else ground.urls
    async with AsyncExitStack() as stack:
        yield {
            broker: await stack.enter_async_context(client_of(person, url))
            for broker, url in urls.items()
        }


class Replay(Path):
    """What a disk has, read by position again and again."""

    is_lasting = True

    def probes(self) -> Mapping[str, Probe]:
        def again(ground: Ground, person: Person) -> bool:
            name = own_durable(ground, person)

            async def work(client: Client) -> None:
                first = await client.read(name, 0, wait_s=10)
                again = (await client.read(name, 0)).notifications  # more may have come since
                assert first.notifications == again[: len(first.notifications)]

            return may(lambda: done(person, work))

        def replay(_: Ground, person: Person, name: str) -> None:
            done(person, lambda each: each.read(name, 0, wait_s=10))

        return {"read own": again, "read another's": on_anothers(replay)}

    def look(self, ground: Ground, person: Person) -> set[str]:
        async def work(client: Client) -> set[str]:
            name, wide = f"look-{ground.cell()}", " OR ".join(f"({each})" for each in WIDE)
            await client.open_durable(name, parse_filter(wide))
            await client.settled()
            cell, after, is_whole = ground.cell(), 0, False
            await asyncio.to_thread(ground.publish_samples, cell)
            while not is_whole:  # first to the end, and then all of it once more
                batch = await client.read(name, after, wait_s=10)
                for each in batch.notifications:
                    is_whole = taken(each.attributes, cell, set()) or is_whole
                    after = each.position
            seen: set[str] = set()
            for each in (await client.read(name, 0)).notifications:
                taken(each.attributes, cell, seen)
            return seen & {*SAMPLES}

        return done(person, work)
