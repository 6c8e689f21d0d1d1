"""Asks every broker of an overlay for its durable subscriptions, over the wire."""

from asyncio import Semaphore
from collections.abc import Mapping
from typing import NamedTuple

from octopis.client.client import Client
from octopis.client.credentials import Given
from octopis.core.model.suggestion import did_you_mean
from octopis.core.wire.durable import DurableInfo
from octopis.errors import (
    InvalidConfiguration,
    InvalidSubscription,
    NotPermitted,
    OctopisError,
    OperationFailed,
)
from octopis.overlay.asking import CONNECT_S, ask_each, no_answer


class Hosted(NamedTuple):
    """A durable subscription, and the broker where it lives."""

    host: str
    info: DurableInfo


class Found(NamedTuple):
    """All durable subscriptions by name, and why brokers have not said theirs."""

    durables: list[Hosted]
    silent: dict[str, str]

    def get(self, name: str) -> Hosted | None:
        """Return the one of this name, where it lives now."""
        found = [each for each in self.durables if each.info.name == name]
        there = sorted(found, key=lambda each: each.info.joins)  # while it moves it is at two
        return next((each for each in there if not each.info.moved_to), None)

    def named(self, name: str) -> Hosted:
        """Return the one of this name, or raise InvalidSubscription, or OperationFailed."""
        found = self.get(name)
        if found is not None:
            return found
        if self.silent:
            reason = f"there is no durable subscription {name!r} at the brokers that answer"
            raise OperationFailed(f"{reason}; {no_answer(self.silent)}")
        names = [each.info.name for each in self.durables]
        hint = did_you_mean(name, names) or "; octopis durable list shows those that there are"
        raise InvalidSubscription(f"there is no durable subscription {name!r}{hint}", name)


async def ask_durables(
    addresses: Mapping[str, str],
    connect_s: float = CONNECT_S,
    credentials: Given = None,
    room: Semaphore | None = None,
) -> Found:
    """Return the durable subscriptions of all brokers. Raises InvalidConfiguration without disks.

    `addresses` are by broker. Brokers without an answer are named, not raised; NotPermitted is
    raised where the role allows none.
    """
    durables: list[Hosted] = []
    silent: dict[str, str] = {}
    answers = await ask_each(
        addresses, Client.durables, connect_s=connect_s, credentials=credentials, room=room
    )
    for broker, answer in answers.items():
        # None of them has a disk, or all know the same roles.
        if isinstance(answer, InvalidConfiguration | NotPermitted):
            raise answer
        if isinstance(answer, OctopisError):
            silent[broker] = str(answer)
        else:
            durables += [Hosted(broker, info) for info in answer]
    return Found(sorted(durables, key=lambda each: (each.info.name, each.host)), silent)
