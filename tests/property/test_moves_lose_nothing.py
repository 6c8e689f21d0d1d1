"""A durable subscription moves: each notification once, in its publisher's order, positions stay.

Publishers learn of the join and of the leave whenever they do, channels deliver when they do, and
both hosts crash. The hosts are real, and the rest is as small as it can be.
"""

from collections.abc import Callable
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.delivery.lasting.durables import Durable
from octopis.core.delivery.lasting.moving import Moves
from octopis.core.delivery.receiver import origin_of
from octopis.core.model import Notification
from support.moving import SCOT, TrialHost, notification_of

OLD, NEW, *OTHERS = SCOT.brokers
EPOCH = 5


class Publisher:
    """Numbers what it publishes, and sends it in order to whom it knows of."""

    def __init__(self, trial: "Trial", place: int) -> None:
        self.who = f"p{place}"
        self.origin = origin_of(place, EPOCH)
        self.knows_old, self.knows_new = True, False
        self.published = 0
        self.last_to_old = 0
        self._trial, self._place, self._number = trial, place, 0
        self._sent: dict[TrialHost, list[tuple[int, Notification]]] = {}

    def publish(self) -> None:
        notification = notification_of(self.who, self.published)
        self.published += 1
        trial = self._trial
        targets = [trial.old] * self.knows_old + [trial.new] * self.knows_new
        own = trial.hosts.get(self._place)
        if own is None:
            self._number += 1
            number = self._number
        else:
            bits = sum(1 << each.channels.place for each in targets)
            number = own.publish(notification, bits)
        for each in targets:
            if each is not own:
                self._sent.setdefault(each, []).append((number, notification))
                if each is trial.old:
                    self.last_to_old = number

    def deliver(self, host: TrialHost) -> bool:
        """Bring a host the next that it does not have; whatever it has lost comes again."""
        has = host.channels.receiver.handed.get(self.origin, 0)
        for number, notification in self._sent.get(host, ()):
            if number > has:
                host.arrive(self.origin, number, notification)
                return True
        return False


class Trial:
    """A move with all that may happen meanwhile."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.old, self.new = TrialHost(OLD, EPOCH), TrialHost(NEW, EPOCH)
        self.hosts = {host.channels.place: host for host in (self.old, self.new)}
        self.publishers = [Publisher(self, place) for place in range(len(SCOT.brokers))]
        self.has_left = False
        self.taken: dict[int, tuple[str, int]] = {}
        self.old.make()
        self.old.sync()

    def meanwhile(self, most: int = 40) -> None:
        """Let anything happen, but for what the move waits for."""
        for _ in range(self.chance.randint(0, most)):
            publisher = self.chance.choice(self.publishers)
            host = self.chance.choice((self.old, self.new))
            self.chance.choice(
                (
                    publisher.publish,
                    publisher.publish,
                    lambda p=publisher, h=host: p.deliver(h),
                    lambda p=publisher, h=host: p.deliver(h),
                    lambda p=publisher: self._learn(p),
                    host.sync,
                    self._read,
                    lambda h=host: h.crash(self.chance) if self.chance.random() < 0.2 else None,
                )
            )()

    def _learn(self, publisher: Publisher) -> None:
        if self.has_left:
            publisher.knows_old = False
        elif self.new.durable is not None:
            publisher.knows_new = True

    def _read(self) -> None:
        """Read a little where it lives, and acknowledge it."""
        if not self.has_left:
            durable = self.old.durable
            assert durable is not None
            self.taken |= self.old.all()
            upto = self.chance.randint(durable.state.acked, durable.end)
            self.old.channels.durables.acknowledge(durable, upto, 0)

    def run(self) -> None:
        self.meanwhile()
        while self.new.durable is None:  # a crash may undo it before it is synced
            self.new.join()
            self.meanwhile(5)
        self.new.sync()
        self.meanwhile()
        for each in self.publishers:
            each.knows_new = True
        lasts = {each: each.last_to_old for each in self.publishers}
        self.meanwhile()
        for each, last in lasts.items():
            while self.old.channels.receiver.handed.get(each.origin, 0) < last:
                assert each.deliver(self.old)
        self.old.sync()
        self.meanwhile()
        self._leave()
        self.meanwhile()
        self._copy()
        self._merge()
        self.meanwhile()
        for each in self.publishers:
            while each.deliver(self.new):
                pass
        self.new.sync()

    def _leave(self) -> None:
        durable = self.old.durable
        assert durable is not None
        self._read()
        self.old.channels.moves.leave(durable, NEW.short, self.old.channels.cut())
        self.old.sync()
        self.has_left = True
        self.left = durable.state
        self.there = self.old.all()

    def _copy(self) -> None:
        state, moves = self.left, self.new.channels.moves
        durable = self.new.durable
        assert durable is not None
        assert state.cut is not None
        about = state.acked, state.until, state.dropped, state.policy, state.cut
        moves.begin(durable, *about)
        self.new.sync()
        while (durable := self.new.durable) is not None and durable.next <= state.until:
            first = durable.next
            positions = list(range(first, min(first + 7, state.until + 1)))
            bodies = [notification_of(*self.there[each]).payload for each in positions]
            self.new.channels.moves.copy(durable, positions, bodies, positions[-1])
            self.meanwhile(6)
        self.new.sync()

    def _merge(self) -> None:
        while (durable := self.new.durable) is not None and durable.state.joins:
            self.new.channels.moves.merge(durable, self.chance.randint(1, 8))
            self.meanwhile(6)
        self.new.sync()

    def check(self) -> None:
        found = self.new.all()
        assert self.new.durable is not None
        last = self.new.durable.next - 1
        assert list(found) == list(range(self.left.acked + 1, last + 1))
        for position, item in self.taken.items():
            assert found.get(position, item) == item, "a position means something else"
        every = [item for _, item in sorted((self.taken | found).items())]
        for each in self.publishers:
            assert [n for who, n in every if who == each.who] == list(range(each.published))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_each_comes_once_and_in_order_and_positions_stay(seed: int):
    trial = Trial(Random(seed))  # noqa: S311 - a seed repeats it
    trial.run()
    trial.check()


_leave, _merge = Moves.leave, Moves.merge


def _cut_is_late(moves: Moves, durable: Durable, to: str, cut: dict[int, int]) -> None:
    _leave(moves, durable, to, {origin: number + 1 for origin, number in cut.items()})


def _cut_is_forgotten(moves: Moves, durable: Durable, count: int) -> int:
    left = _merge(moves, durable, count)
    if not left:
        durable.state = msgspec.structs.replace(durable.state, cut=None)
    return left


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("_was_taken", lambda *_: False),
        ("_was_taken", lambda *_: True),
        ("leave", _cut_is_late),
        ("merge", _cut_is_forgotten),
    ],
    ids=["all is taken", "none is taken", "a late cut", "a cut that is forgotten"],
)
def test_planted_faults_are_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[..., object]
):
    monkeypatch.setattr(Moves, name, fault)
    for seed in range(100):
        trial = Trial(Random(seed))  # noqa: S311 - a seed repeats it
        trial.run()
        try:
            trial.check()
        except AssertionError:
            return
    pytest.fail("nobody has noticed")
