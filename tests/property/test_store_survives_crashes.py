"""Whatever happens when the power goes: what was reported is there, and nothing is ever wrong."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from octopis.errors import StoreFailed
from octopis.store import Sync
from octopis.store import journal as journals
from octopis.store.journal import Journal
from octopis.store.records import encode
from octopis.store.state import State
from support.disk import Crash, Disk
from support.stores import Stepped, stepped

__all__ = ["stepped"]

Make = Callable[..., Stepped]
SEGMENT_BYTES = 2048


class Trial:
    """A store that is used, crashes and is opened again, beside a model of what it must hold."""

    def __init__(
        self, make: Make, seed: int, sync: Sync = Sync.ALWAYS, *, is_killed: bool = False
    ) -> None:
        """`is_killed`: the process ends, and not the machine."""
        self.chance = Random(seed)  # noqa: S311 - no secret
        self.disk = Disk()
        # Of one size, what is left of a torn group lies exactly behind what comes in its place.
        self._sizes = self.chance.choice([[0, 1, 30, 300, 900, 3000], [300]])
        self.sync = sync
        self.is_killed = is_killed
        self._make = make
        self.appended: dict[int, bytes] = {}
        """All that may still be there, by position."""
        self.safe: set[int] = set()
        """What was reported, and is still needed."""
        self.freed: set[int] = set()
        self.puts: list[tuple[str, bytes | None, int]] = []
        """Keys, values, and the position that was next."""
        self.puts_safe = 0
        self._tickets: list[tuple[int, int | None]] = []
        self.highest_safe = 0
        self.crashes = 0

    def run(self, steps: int, crash_at: int | None = None) -> None:
        """Use the store; power may go at this call, or where chance wants it."""
        self.disk.crash_at = crash_at
        try:
            self._open()
            for _ in range(steps):
                self._act()
            self.used.store.close()
            self._note_safe(self.used.store.ticket)
        except Crash:
            self.crashes += 1
            self.disk.crash_at = None
        if self.is_killed:
            self.disk.kill()
            return
        self.disk.lose_power(self.chance)
        if self.sync is Sync.INTERVAL:  # promises nothing here; but what is left must be a prefix
            self.safe, self.highest_safe = set(), 0

    def run_again_and_again(self) -> None:
        """Lose power several times, soon or late, and open the store once more."""
        for _ in range(8):
            soon = self.chance.randint(1, self.chance.choice([12, 120]))
            self.run(60, self.disk.calls + soon)
        self.run(0)

    def _open(self) -> None:
        self.used = self._make(self.disk, segment_bytes=SEGMENT_BYTES, sync=self.sync)
        self._tickets = []
        self._check()

    def _check(self) -> None:
        found, store = self.used.recovered, self.used.store
        assert store.damages == []
        for position, body in found.items():
            assert self.appended[position] == body
        assert self.safe <= set(found), "what was reported is missing"
        needed = [each for each in sorted(self.appended) if each not in self.freed]
        there = [each in found for each in needed]
        assert there == sorted(there, reverse=True), "a hole before something that is there"
        self._check_puts(store.items("k"), store._index.next)
        self.appended = dict(found)
        self.safe = set(found) - self.freed  # it is there now, and stays
        self.freed &= set(found)
        for position in self.freed:
            store.free(position)

    def _check_puts(self, items: dict[str, bytes], following: int) -> None:
        """What is put is what some number of puts give, no fewer than were reported."""
        states: list[dict[str, bytes]] = [{}]
        for key, value, _ in self.puts:
            state = dict(states[-1])
            state.pop(key, None)
            states.append(state if value is None else state | {key: value})
        fitting = [n for n in range(self.puts_safe, len(states)) if states[n] == items]
        assert fitting, "what was put is not what any moment had"
        before = self.puts[fitting[0] - 1][2] if fitting[0] else 0
        assert following >= before, "a put is ahead of the log"
        self.puts = [(key, value, 0) for key, value in items.items()]
        self.puts_safe = len(self.puts)

    def _act(self) -> None:
        store, chance = self.used.store, self.chance
        match chance.choice(["append", "append", "append", "put", "free", "step", "reclaim"]):
            case "append":
                for _ in range(chance.choice([1, 1, 8])):
                    body = chance.randbytes(chance.choice(self._sizes))
                    position = store.append(body)
                    assert position > self.highest_safe
                    self.appended[position] = body
                    self._tickets.append((store.ticket, position))
            case "put":
                value = chance.choice([None, chance.randbytes(4)])
                key = chance.choice("ab")
                if value is None:
                    store.delete("k", key)
                else:
                    store.put("k", key, value)
                self.puts.append((key, value, max(self.appended, default=0) + 1))
                self._tickets.append((store.ticket, None))
            case "free":
                for position in sorted(self.safe)[: chance.randint(1, 5)]:
                    store.free(position)
                    self.freed.add(position)
                    self.safe.discard(position)
            case "reclaim":
                assert store.reclaimable is (store.reclaim() > 0)
                self.used.step()
                self._note_safe(self.used.synced)
            case "step":
                self.used.step()
                self._note_safe(self.used.synced)
        needed = [each for each in self.appended if each not in self.freed]
        wanted = chance.sample(needed, min(len(needed), 5))
        assert store.read(wanted) == [self.appended[each] for each in wanted]
        assert store.records == len(needed)

    def _note_safe(self, ticket: int) -> None:
        while self._tickets and self._tickets[0][0] <= ticket:
            _, position = self._tickets.pop(0)
            if position is None:
                self.puts_safe += 1
                continue
            self.highest_safe = max(self.highest_safe, position)
            if position not in self.freed:
                self.safe.add(position)


@pytest.mark.parametrize("seed", range(4))
def test_power_goes_at_every_call(stepped: Make, seed: int):
    whole = Trial(stepped, seed)
    whole.run(60)
    assert whole.disk.calls > 60
    for crash_at in range(1, whole.disk.calls + 1):
        trial = Trial(stepped, seed)
        trial.run(60, crash_at)
        assert trial.crashes == 1
        trial.run(20)
        trial.run(0)


@pytest.mark.parametrize("seed", range(150))
def test_power_goes_again_and_again(stepped: Make, seed: int):
    trial = Trial(stepped, seed)
    trial.run_again_and_again()
    assert trial.crashes > 0


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "power"])
def test_without_syncs_a_kill_loses_nothing_and_power_only_the_end(
    stepped: Make, seed: int, is_killed: bool
):
    trial = Trial(stepped, seed, Sync.INTERVAL, is_killed=is_killed)
    trial.run_again_and_again()
    assert trial.crashes > 0


def _no_sync(journal: Journal) -> None:
    journal._synced = journal._written


def _state_first(journal: Journal) -> None:
    if journal._changes:
        journal._state.write(journal._changes, journal._synced)
        journal._changes = {}
    while journal._runs:
        journal._write_segment()


def _all_is_proven(position: int, bodies: Sequence[bytes], _: int, salt: int) -> list[bytes]:
    return [
        part
        for step, body in enumerate(bodies)
        for part in encode(position + step, [body], 0, salt)
    ]


def _keep_names_in_memory(_: Disk, __: Path) -> None:
    pass


FAULTS = {
    "reported before it is synced": (Journal, "sync", _no_sync),
    "state before the log": (Journal, "flush", _state_first),
    "every record says that all before it is synced": (journals, "encode", _all_is_proven),
    "folders are never synced": (Disk, "sync_folder", _keep_names_in_memory),
    "a segment is recycled before its word is gone": (
        State,
        "remove_segments",
        lambda _, __, ___: None,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_caught(stepped: Make, monkeypatch: pytest.MonkeyPatch, fault: str):
    where, name, what = FAULTS[fault]
    monkeypatch.setattr(where, name, what)
    with pytest.raises((AssertionError, StoreFailed, KeyError)):
        _many_trials(stepped)


def _many_trials(make: Make) -> None:
    for seed in range(300):
        Trial(make, seed).run_again_and_again()
