"""One sending and one receiving host, joined by a wire that loses, copies and mixes up."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.delivery.channels import LOOK_NS, Channels
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.delivery.posts import Open, way_of
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm, Broker
from octopis.core.routing.algorithms.tnr import Crossroads
from octopis.core.routing.messages import NotificationMessage
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor

OVERLAY = SCOT(AcyclicFactor("ab", [("a", "b")]), ConnectivityFactor.complete(2))
HERE, THERE = BrokerId("a", 0), BrokerId("b", 1)
TARGET = OVERLAY.bit(THERE)
MS = 1_000_000


def two(options: DeliveryOptions | None = None) -> tuple[Channels, Channels]:
    options = options or DeliveryOptions()
    one, other = Channels(HERE, OVERLAY, 1, options), Channels(THERE, OVERLAY, 2, options)
    one.host_lives(THERE, 2, 0)
    return one, other


def batch(*payloads: int) -> list[NotificationMessage]:
    return [NotificationMessage(Notification({"n": each}), targets=TARGET) for each in payloads]


class Wire:
    """Loses, copies and mixes up what it carries."""

    def __init__(self, random: Random, loss: float, doubling: float, late_ms: int) -> None:
        self._random, self._loss, self._doubling, self._late_ms = random, loss, doubling, late_ms
        self._under_way: list[tuple[int, int, object]] = []
        self._places = 0

    def send(self, thing: object, now_ns: int) -> None:
        is_there, is_double = self._random.random(), self._random.random()
        for _ in range((is_there >= self._loss) + (is_double < self._doubling)):
            self._places += 1
            comes_ns = now_ns + self._random.randrange(self._late_ms * MS)
            self._under_way.append((comes_ns, self._places, thing))

    def come(self, now_ns: int) -> list[object]:
        found = sorted(each for each in self._under_way if each[0] <= now_ns)
        self._under_way = [each for each in self._under_way if each[0] > now_ns]
        return [thing for _, _, thing in found]


def take_in(
    sender: Channels, receiver: Channels, thing: object, now_ns: int
) -> Sequence[NotificationMessage]:
    """Let something arrive where it is for; return what may be delivered."""
    if isinstance(thing, NotificationMessage):
        return receiver.in_order([thing], now_ns)
    end = receiver if isinstance(thing, Open) else sender
    end.arrived(thing, now_ns)  # type: ignore[arg-type]
    return ()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    loss=st.floats(0, 0.5),
    doubling=st.floats(0, 0.5),
    late_ms=st.integers(1, 400),
    count=st.integers(1, 40),
)
def test_all_comes_once_and_in_order_over_any_wire(
    seed: int, loss: float, doubling: float, late_ms: int, count: int
):
    sender, receiver = two(DeliveryOptions(window=8, give_up_s=1000))
    wire = Wire(Random(seed), loss, doubling, late_ms)  # noqa: S311 - it must repeat
    got: list[NotificationMessage] = []
    published = now = 0
    while published < count or not (sender.is_quiet and receiver.is_quiet):
        now += LOOK_NS
        assert now < 600_000 * MS, "it does not come to rest"
        for thing in wire.come(now):
            got += take_in(sender, receiver, thing, now)
        if published < count and not sender.held & TARGET:
            wire.send(*sender.number(batch(published), now), now)
            published += 1
        for channels in (sender, receiver):
            channels.look(now)
            for thing in (*channels.take_posts(now), *channels.take_again()):
                wire.send(thing, now)
        got += receiver.take_in_order()
    assert [each.notification.attributes["n"] for each in got] == list(range(count))
    assert receiver.take_missed() == []
    assert sender.sender.kept == 0


def test_what_has_waited_comes_before_what_arrives_before_it_was_taken():
    sender, receiver = two(DeliveryOptions(give_up_s=1))
    first, second, third = sender.number(batch(1, 2, 3), 0)
    (opening,) = sender.take_posts(0)
    receiver.arrived(opening, 0)
    assert receiver.in_order([second], 0) == []
    sender.look(250 * MS)
    for now in range(260, 1300, 10):
        sender.look(now * MS)
    receiver.arrived(sender.take_posts(1300 * MS)[-1], 1300 * MS)
    (fourth,) = _next(sender, receiver)
    assert receiver.in_order([fourth], 1310 * MS) == [second, fourth]
    assert receiver.take_in_order() == []
    assert receiver.in_order([first, third], 1310 * MS) == []


def _next(sender: Channels, receiver: Channels) -> list[NotificationMessage]:
    """Let the sender know that the target is back, and publish."""
    for ack in receiver.take_posts(1300 * MS):
        sender.arrived(ack, 1300 * MS)
    return list(sender.number(batch(4), 1300 * MS))


def test_a_broker_that_stood_still_gives_nobody_up():
    sender, receiver = two(DeliveryOptions(give_up_s=1))
    sender.number(batch(1), 0)
    sender.look(10 * MS)
    sender.look(5000 * MS)
    assert sender.sender.given_up == 0
    for now in range(5010, 6000, 10):
        sender.look(now * MS)
    sender.look(6000 * MS)
    assert sender.sender.given_up == 1
    assert receiver.is_quiet


def test_posts_go_around_what_is_down_and_nowhere_where_there_is_no_way():
    sender, _ = two()
    sender.number(batch(1), 0)
    (post,) = sender.take_posts(0)
    core = Broker(HERE, OVERLAY, Algorithm.TNR)
    here = Crossroads(HERE, OVERLAY, core.link_status)
    way = way_of(here, post, 0)
    assert way is not None
    assert (way[0].link, way[1]) == (BrokerId("a", 1), post)
    core.link_down(BrokerId("a", 1))
    way = way_of(here, post, 0)
    assert way is not None
    assert way[0].link == BrokerId("b", 0)
    core.link_down(BrokerId("b", 0))
    assert way_of(here, post, 0) is None


@pytest.mark.parametrize("in_parts", [False, True])
def test_local_clients_get_it_also_where_nobody_else_does(in_parts: bool):
    core = Broker(
        HERE,
        OVERLAY,
        Algorithm.TNR,
        channels=Channels(HERE, OVERLAY, 1, DeliveryOptions()),
    )
    core.client_subscribes("me", "mine", parse_filter("n > 0"))
    published = [Notification({"n": 1})]
    if in_parts:
        effects = [each for part in core.publishes_in_parts(published) for each in part]
    else:
        effects = core.client_publishes(published)
    assert [each.client for each in effects] == ["me"]  # type: ignore[union-attr]
