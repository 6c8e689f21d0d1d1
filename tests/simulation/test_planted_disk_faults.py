"""Brokers with a disk and a fault planted in them violate the laws that the real ones keep."""

from collections.abc import Callable
from typing import Any

import pytest

from octopis.core.delivery.channel import Channel
from octopis.core.delivery.lasting.channels import LastingChannels
from octopis.core.delivery.lasting.durables import Durables
from octopis.core.delivery.lasting.memory import KnownHosts, checkpoint
from octopis.core.delivery.lasting.receiver import LastingReceiver
from octopis.core.delivery.lasting.sender import LastingSender
from octopis.core.delivery.receiver import Receiver
from octopis.core.delivery.sender import Sender
from octopis.simulator.soak.disk import VirtualStore
from octopis.simulator.soak.disk_node import DiskNode
from octopis.simulator.soak.run import run_seed

RUNS = 60
"""So many at most: most faults are caught in one of the first ten."""

FIRST_SEEDS = {
    "skips holes": 270,
    "sends again what is not on disk": 390,
    "tells of numbers that are not on disk": 2020,
}
"""Where the runs begin of faults that hurt in one of some hundred runs only."""


def seed_that_violates(law: str, first: int = 1) -> int | None:
    """Return the first of the seeds whose run violates a law."""
    for seed in range(first, first + RUNS):
        if any(each.startswith(law) for each in run_seed(seed, disk=True).violations):
            return seed
    return None


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def before(name: str) -> Callable[..., None]:
    """Return what does at once, in `DiskNode.accept`, what should wait for the disk."""
    accept = DiskNode.accept

    def faulty(self: DiskNode, batch: Any, answer: Callable[[], None]) -> None:
        when_synced = self.when_synced

        def at_once(action: Callable[[], None]) -> None:
            is_release = getattr(action, "func", None) is not None
            if is_release == (name == "release"):
                action()
            else:
                when_synced(action)

        self.when_synced = at_once  # type: ignore[method-assign]
        accept(self, batch, answer)
        del self.when_synced

    return faulty


# Receivers


def acknowledges_before_the_sync(self: LastingReceiver, lasts: dict[int, int], _: int) -> None:
    self._unsynced.append((0, lasts))


# Senders


def sends_what_is_not_on_disk(_: LastingSender, channel: Channel) -> Any:
    return channel.pending


def parks_nothing(self: LastingSender, channel: Channel) -> None:
    self._give_up_for_good(channel)


def numbers_anew(self: LastingSender, _: int, states: Any, publications: Any, now_ns: int) -> None:
    restore(self, 0, states, publications, now_ns)


restore = LastingSender.restore


# Small state


def checkpoints_after_reclaiming(self: LastingChannels) -> None:
    self.hosts.write()
    if self.store.reclaimable:
        self.store.reclaim(self.store.position)
        checkpoint(self)


def finds_nothing(self: LastingChannels, records: Any, now_ns: int) -> None:
    by_key, self.durables._by_key = self.durables._by_key, {}
    recover(self, records, now_ns)
    self.durables._by_key = by_key


recover = LastingChannels.recover


def lets_read_before_the_sync(self: Durables, touched: Any, _: int) -> None:
    self._unsynced.append((0, {each: each.next - 1 for each in touched}))
    self.synced(0)


def acknowledges_in_memory(self: Durables, durable: Any, position: int, _: int) -> None:
    write, self.write = self.write, nothing  # type: ignore[method-assign]
    acknowledge(self, durable, position, 0)
    self.write = write  # type: ignore[method-assign]


acknowledge = Durables.acknowledge


def writes_state_before_the_log(self: VirtualStore) -> int:
    if self._going is not None:
        self._disk.state.update(self._going[1])
    self._disk.state.update(self._puts)
    return lose_power(self)


lose_power = VirtualStore.lose_power

FAULTS: dict[str, tuple[Any, str, Any, str]] = {
    "releases before the sync": (DiskNode, "accept", before("release"), ""),
    "answers before the sync": (DiskNode, "accept", before("answer"), "nothing lost"),
    "acknowledges before the sync": (
        LastingReceiver,
        "kept",
        acknowledges_before_the_sync,
        "nothing lost",
    ),
    "knows no publication again": (LastingChannels, "has", lambda *_: False, "nothing twice"),
    "checkpoints after reclaiming": (
        LastingChannels,
        "tidy",
        checkpoints_after_reclaiming,
        "",
    ),
    "forgets streams": (LastingReceiver, "restore", nothing, "nothing twice"),
    "writes no channel down": (LastingSender, "_write", nothing, ""),
    "numbers anew": (LastingSender, "restore", numbers_anew, "nothing lost"),
    "delivers again to new lives": (LastingReceiver, "is_fresh", lambda *_: True, "nothing twice"),
    "finds nothing of durable subscriptions": (
        LastingChannels,
        "recover",
        finds_nothing,
        "nothing lost",
    ),
    "lets read before the sync": (
        Durables,
        "await_sync",
        lets_read_before_the_sync,
        "the same again",
    ),
    "acknowledges in memory": (
        Durables,
        "acknowledge",
        acknowledges_in_memory,
        "what is acknowledged stays",
    ),
    "knows of no durable subscriptions": (LastingSender, "set_durable", nothing, "nothing lost"),
    "forgets the tables of others": (KnownHosts, "known", lambda _: {}, "nothing lost"),
    "parks nothing": (LastingSender, "_give_up", parks_nothing, "nothing lost"),
    "begins anew with a new life": (LastingSender, "renewed", Sender.renewed, "nothing lost"),
    "skips holes": (LastingReceiver, "_is_given_up", Receiver._is_given_up, "nothing lost"),
    "writes state before the log": (
        VirtualStore,
        "lose_power",
        writes_state_before_the_log,
        "nothing lost",
    ),
    "sends again what is not on disk": (LastingSender, "_sent_to", sends_what_is_not_on_disk, ""),
    "tells of numbers that are not on disk": (
        LastingSender,
        "take_posts",
        Sender.take_posts,
        "nothing lost",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch):
    owner, name, faulty, law = FAULTS[fault]
    monkeypatch.setattr(owner, name, faulty)
    assert seed_that_violates(law, FIRST_SEEDS.get(fault, 1)) is not None


@pytest.mark.parametrize("first", FIRST_SEEDS.values())
def test_disks_without_a_fault_are_not(first: int):
    assert seed_that_violates("", first) is None
