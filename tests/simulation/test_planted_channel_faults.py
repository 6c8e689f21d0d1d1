"""Channels with a fault planted in them violate the laws that the real ones keep.

So the checkers can fail, and each step of the protocol is needed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from octopis.core.delivery.channel import Channel
from octopis.core.delivery.channels import Channels
from octopis.core.delivery.posts import Ack, Open
from octopis.core.delivery.receiver import Missed, Receiver, origin_of
from octopis.core.delivery.sender import Sender
from octopis.core.routing.algorithms import target_routing
from octopis.core.routing.messages import NotificationMessage, copy_for
from octopis.simulator.soak.plan import Kind, plan_of
from octopis.simulator.soak.run import run_seed

RUNS = 60
"""So many of a kind at most: most faults are caught in one of the first three."""


def laws_violated(make: Callable[..., Channels], kind: Kind, law: str) -> bool:
    """Tell whether a law is violated by channels, in one of the runs."""
    runs = 0
    for seed in range(1, 2000):
        if plan_of(seed).kind is kind:
            runs += 1
            if any(each.startswith(law) for each in run_seed(seed, make).violations):
                return True
            if runs == RUNS:
                break
    return False


def planted(
    sender: type[Sender] = Sender, receiver: type[Receiver] = Receiver
) -> Callable[..., Channels]:
    """Return what makes channels with these ends."""

    def make(*arguments: Any) -> Channels:
        channels = Channels(*arguments)
        channels.sender.__class__ = sender
        channels.receiver.__class__ = receiver
        return channels

    return make


# Receivers


class TakesAllTwice(Receiver):
    def in_order(
        self, arrived: Sequence[NotificationMessage], now_ns: int
    ) -> list[NotificationMessage]:
        again = [
            each
            for each in arrived
            if each.origin in self._streams and each.number <= self._streams[each.origin].last
        ]
        return [*super().in_order(arrived, now_ns), *again]


class HoldsNothingBack(Receiver):
    def in_order(
        self, arrived: Sequence[NotificationMessage], now_ns: int
    ) -> list[NotificationMessage]:
        seen = self.__dict__.setdefault("seen", set())
        found = [each for each in arrived if each.origin in self._streams]
        found = [each for each in found if (each.origin, each.number) not in seen]
        seen.update((each.origin, each.number) for each in found)
        super().in_order(arrived, now_ns)
        return found


class AcknowledgesWhatWaits(Receiver):
    def take_posts(self, now_ns: int) -> list[Ack]:
        found = []
        for ack in super().take_posts(now_ns):
            stream = self._streams.get(origin_of(ack.to, ack.stream))
            newest = max((each.number for each in stream.held.values()), default=0) if stream else 0
            found.append(ack if ack.last is None else replace(ack, last=max(ack.last, newest)))
        return found


class TakesOldLives(Receiver):
    """Takes what any life of a host sends, however late."""

    def opened(self, post: Open, now_ns: int) -> list[NotificationMessage]:
        if origin_of(post.by, post.stream) not in self._streams:
            self._newest.pop(post.by, None)
        return super().opened(post, now_ns)


class AsksNobodyBack(Receiver):
    def opened(self, post: Open, now_ns: int) -> list[NotificationMessage]:
        self._tokens[post.by] = origin_of(post.by, post.stream), post.token
        self._dead.clear()
        return super().opened(post, now_ns)


class TakesWhatWasForAnEarlierLife(Receiver):
    def opened(self, post: Open, now_ns: int) -> list[NotificationMessage]:
        return super().opened(replace(post, life=self._life), now_ns)


class BeginsInTheMiddle(Receiver):
    """Takes the first that it sees of a stream for its beginning."""

    def in_order(
        self, arrived: Sequence[NotificationMessage], now_ns: int
    ) -> list[NotificationMessage]:
        for each in arrived:
            if each.origin not in self._streams and each.origin not in self._dead:
                post = Open(0, each.origin >> 32, self._life, each.origin & 0xFFFFFFFF, 0)
                self._tokens[post.by] = each.origin, 0
                self._begin(each.origin, replace(post, base=each.number - 1), now_ns)
        return super().in_order(arrived, now_ns)


class AsksAnewEachTime(Receiver):
    def _ask_back(self, origin: int, by: int) -> None:
        self._asked += 1
        self._tokens[by] = origin, self._asked


class TellsNobody(Receiver):
    def take_missed(self) -> list[Missed]:
        super().take_missed()
        return []


class TellsOnlyOfWhatCame(Receiver):
    """Tells of the end of a stream only where something of it had come."""

    def in_order(
        self, arrived: Sequence[NotificationMessage], now_ns: int
    ) -> list[NotificationMessage]:
        found = super().in_order(arrived, now_ns)
        self.__dict__.setdefault("came", set()).update(each.origin for each in found)
        return found

    def _begin(self, origin: int, post: Open, now_ns: int) -> list[NotificationMessage]:
        older = self._newest.get(post.by)
        found = super()._begin(origin, post, now_ns)
        if older is not None and older not in self.__dict__.get("came", ()):
            self._missed.pop()
        return found


class WaitsForTheDead(Receiver):
    def look(self, now_ns: int) -> list[NotificationMessage]:
        self.stood_still(now_ns)
        return super().look(now_ns)


# Senders


class KnowsNoWindow(Sender):
    held = 0  # type: ignore[assignment]


class SendsAgainToAll(Sender):
    def take_again(self) -> list[NotificationMessage]:
        for number in self._again:
            if number in self._kept:
                self._again[number] = self._kept[number].message.targets
        return super().take_again()


class SendsNothingAgain(Sender):
    def take_again(self) -> list[NotificationMessage]:
        super().take_again()
        return []


class ForgetsWhenOneHasIt(Sender):
    def acknowledged(self, ack: Ack, now_ns: int) -> None:
        super().acknowledged(ack, now_ns)
        for channel in self.channels:
            if ack.last is not None and channel.acked < min(ack.last, channel.last):
                self._progress(channel, min(ack.last, channel.last), now_ns)


class CountsNothing(Sender):
    def _drop(self, channel: Channel) -> int:
        counted = self.given_up
        lost = super()._drop(channel)
        self.given_up = counted
        return lost


class GivesNobodyUp(Sender):
    def look(self, now_ns: int) -> None:
        self.stood_still(now_ns)
        super().look(now_ns)


class GivesUpTooEarly(Sender):
    def look(self, now_ns: int) -> None:
        super().look(now_ns)
        for channel in self.channels:
            if channel.pending and now_ns - channel.heard_ns >= 300_000_000:
                self._give_up(channel)


class SendsAgainToTheRestarted(Sender):
    """Sends a new life of a target what the last one may have delivered."""

    def renewed(self, place: int, now_ns: int) -> None:
        channel = self._channels.get(place)
        if channel is not None and channel.life != self.life_of(place):
            channel.life, channel.is_open = self.life_of(place), False
            channel.base = channel.acked
            self._open(channel, now_ns)


class OpensOnce(Sender):
    def _open(self, channel: Channel, now_ns: int, token: int = 0) -> None:
        if not channel.opened_ns > 0:
            super()._open(channel, max(now_ns, 1), token)


class BeginsAtTheFirst(Sender):
    def _channel(self, place: int) -> Channel:
        if place not in self._channels:
            self._channels[place] = Channel(place, self.life_of(place), self._number + 1)
            self._open(self._channels[place], 0)
        return self._channels[place]


FAULTS: list[tuple[dict[str, Any], Kind, str]] = [
    ({"receiver": TakesAllTwice}, Kind.LIVING, "nothing twice"),
    ({"receiver": HoldsNothingBack}, Kind.LIVING, "in order"),
    ({"receiver": AcknowledgesWhatWaits}, Kind.LIVING, "nothing lost"),
    ({"receiver": BeginsInTheMiddle}, Kind.LIVING, "nothing lost"),
    ({"receiver": TakesOldLives}, Kind.RESTARTS, "in order"),
    ({"receiver": AsksNobodyBack}, Kind.RESTARTS, "nothing twice"),
    ({"receiver": TakesWhatWasForAnEarlierLife}, Kind.RESTARTS, "nothing twice"),
    ({"receiver": AsksAnewEachTime}, Kind.RESTARTS, "rest"),
    ({"receiver": TellsNobody}, Kind.RESTARTS, "told"),
    ({"receiver": TellsOnlyOfWhatCame}, Kind.RESTARTS, "told"),
    ({"receiver": WaitsForTheDead}, Kind.DEATH, "rest"),
    ({"sender": KnowsNoWindow}, Kind.LIVING, "bounded"),
    ({"sender": SendsAgainToAll}, Kind.LIVING, "to those that lack it"),
    ({"sender": SendsNothingAgain}, Kind.LIVING, "rest"),
    ({"sender": ForgetsWhenOneHasIt}, Kind.LIVING, "nothing lost"),
    ({"sender": CountsNothing}, Kind.DEATH, "counted"),
    ({"sender": GivesNobodyUp}, Kind.DEATH, "rest"),
    ({"sender": GivesUpTooEarly}, Kind.LIVING, "counted"),
    ({"sender": SendsAgainToTheRestarted}, Kind.RESTARTS, "nothing twice"),
    ({"sender": OpensOnce}, Kind.LIVING, "rest"),
    ({"sender": BeginsAtTheFirst}, Kind.LIVING, "nothing lost"),
]


@pytest.mark.parametrize(
    ("ends", "kind", "law"), FAULTS, ids=[next(iter(each[0].values())).__name__ for each in FAULTS]
)
def test_a_planted_fault_is_caught(ends: dict[str, Any], kind: Kind, law: str):
    assert laws_violated(planted(**ends), kind, law)


def test_distances_of_the_wrong_targets_are_caught(monkeypatch: pytest.MonkeyPatch):
    def mixed_up(message: NotificationMessage, targets: int, tried: int) -> NotificationMessage:
        found = copy_for(message, targets, tried)
        return replace(found, distances=message.distances[: len(found.distances)])

    monkeypatch.setattr(target_routing, "copy_for", mixed_up)
    assert laws_violated(Channels, Kind.LIVING, "")


@pytest.mark.parametrize("kind", [Kind.LIVING, Kind.RESTARTS, Kind.DEATH])
def test_channels_without_a_fault_are_not(kind: Kind):
    assert not laws_violated(Channels, kind, "")
