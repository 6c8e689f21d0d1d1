"""Roles in tests: clients are let in as whom their names say, without a login.

A client called "alice/app" is alice's client "app". What alice may do is in `Roles`, and can be
changed while brokers run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import structs

from octopis.broker import handshake
from octopis.broker.broker import LiveBroker
from octopis.broker.clients.session import ClientSession
from octopis.client.client import Client
from octopis.core.filters import parse_filter
from octopis.core.wire.greeting import ClientHello
from octopis.security.identity import Identity, Permissions
from support.live import Brokers, client_of, until


def role(publish: str = "FALSE", subscribe: str = "FALSE", **more: Any) -> Permissions:
    """Return permissions by the texts of their filters."""
    return Permissions(parse_filter(publish), parse_filter(subscribe), **more)


ALL = role("TRUE", "TRUE", is_durable=True, sees_status=True)


class Roles:
    """Who there is, and what each may do."""

    def __init__(self, **permissions: Permissions) -> None:
        self._permissions = permissions

    def identity(self, name: str) -> Identity:
        return Identity(name, self._permissions[name])

    def current(self, identity: Identity) -> Identity | None:
        found = self._permissions.get(identity.name)
        return None if found is None else structs.replace(identity, permissions=found)

    def change(self, live: Brokers, **permissions: Permissions | None) -> int:
        """Change what some may do, or let them in no more, and have all brokers know."""
        for name, each in permissions.items():
            if each is None:
                del self._permissions[name]
            else:
                self._permissions[name] = each
        return sum(broker.roles_changed(self.current) for broker in live.values())

    async def changed(self, live: Brokers, **permissions: Permissions) -> None:
        """Change what some may do, and wait until their clients have come back."""
        there = [
            (broker, client, session)
            for broker in live.values()
            for client, session in broker.clients.items()
            if client.partition("/")[0] in permissions
        ]
        assert self.change(live, **permissions) == len(there)
        await until(lambda: all(client in broker.clients for broker, client, _ in there))
        assert not any(broker.clients[client] is old for broker, client, old in there)


@contextmanager
def by_name(roles: Roles) -> Iterator[Roles]:
    """Let brokers of this process take clients in as whom their names say."""

    def session(
        broker: LiveBroker, hello: ClientHello, connection: Any, *_: object, **__: object
    ) -> ClientSession:
        user, _, own = hello.client.partition("/")
        return ClientSession(
            broker, structs.replace(hello, client=own), connection, roles.identity(user)
        )

    real = handshake.ClientSession
    handshake.ClientSession = session  # type: ignore[assignment, misc]
    try:
        yield roles
    finally:
        handshake.ClientSession = real  # type: ignore[misc]


def as_user(broker: LiveBroker, name: str, app: str = "app", **options: Any) -> Client:
    """Return a client of somebody's."""
    return client_of(broker, client_id=f"{name}/{app}", **options)
