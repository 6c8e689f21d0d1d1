"""Real brokers with channels (octopis.core.delivery): once and in order, in virtual time.

What is modelled beside queues, links and costs:
- posts go from broker to broker past the queues, in the latency of each link, and cost neither
  server nor sender anything; a link that is cut while a post is on it loses it;
- a host looks at its channels every `LOOK_NS` while they are not quiet, as a live one does;
- what is sent again goes onto the queues as any copy, and is taken in at a copy's cost, also where
  it comes a second time and is dropped;
- a publication that has to wait for a host that lacks too much waits behind the server, and with it
  what its publisher sends later.

A notification is under way until its host has forgotten it, because all its targets have
acknowledged it. Where the host has given one of them up, that one may still get it, from what was
on its way: then the notification is under way until the run ends.
"""

from collections import Counter, deque
from collections.abc import Collection, Sequence
from functools import partial

import msgspec

from octopis.core.delivery.channels import LOOK_NS, Channels
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.delivery.posts import Post, way_of
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Broker, Deliver, Effect
from octopis.core.routing.algorithms.tnr import Crossroads
from octopis.core.routing.messages import NotificationMessage
from octopis.core.topology import SCOT
from octopis.scenario.folder import Scenario
from octopis.simulator.audience import Copy, Flight
from octopis.simulator.audience_index import FlightAttributes, flight_of
from octopis.simulator.kernel import Kernel
from octopis.simulator.laws import Laws
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station
from octopis.simulator.notifying import Notifying
from octopis.simulator.real_brokers import RealBrokers
from octopis.simulator.subscribing import Subscribing


class ChannelCounts(msgspec.Struct, frozen=True):
    """What all channels of a run have done."""

    sent_again: int
    duplicates: int
    given_up: int


class StationChannels(Channels):
    """The channels of one station, with what the run has to know of them."""

    def __init__(self, broker: BrokerId, scot: SCOT, options: DeliveryOptions) -> None:
        super().__init__(broker, scot, 0, options)
        self.under_way: dict[int, Flight] = {}
        """What the sending end keeps, by its number."""

        self.hops: dict[tuple[int, int], int] = {}
        """Over how many links what is held back has come, by publisher and number."""

        self.waiting: dict[int, deque[Copy]] = {}
        """Publications that wait for hosts that lack too much, by their publisher."""

        self.will_look = False

    def number(
        self, batch: Sequence[NotificationMessage], now_ns: int
    ) -> Sequence[NotificationMessage]:
        """Note what is kept from now on."""
        numbered = super().number(batch, now_ns)
        for message in numbered:
            self.under_way[message.number] = flight_of(message.notification)
        return numbered

    @property
    def turned_away(self) -> int:
        """How many copies that came were neither handed on nor held back."""
        return self.receiver.duplicates + self.receiver.refused

    def take_forgotten(self) -> list[Flight]:
        """Return what the sending end does not keep any more."""
        left = len(self.under_way) - self.sender.kept
        gone: list[int] = []
        for number in self.under_way:
            if len(gone) == left:  # mostly the oldest
                break
            if not self.sender.keeps(number):
                gone.append(number)
        return [self.under_way.pop(number) for number in gone]


class ChannelledBrokers(RealBrokers):
    """The traffic of an overlay whose brokers have channels."""

    def __init__(
        self,
        scenario: Scenario,
        kernel: Kernel,
        ledger: Ledger,
        laws: Laws,
        priced: tuple[Subscribing, Notifying],
    ) -> None:
        """Make the brokers and their channels; `priced` says what messages cost."""
        scot, options = scenario.topology.scot, scenario.document.delivery
        stations = kernel.network.stations
        self._channels = [StationChannels(each.broker, scot, options) for each in stations]
        super().__init__(scenario, kernel, ledger, laws, priced)
        self._here = [Crossroads(each.id, scot, each.link_status) for each in self.brokers]
        self._to_publish = scenario.notification_count
        self._payload = bytes(scenario.document.costs.notification_bytes)
        self._cuts: Counter[int] = Counter()
        """How often each output was cut, by its index."""

        self._attempts = 0
        self._doubtful: list[Flight] = []
        """What a host has given up at a target that may still get it."""

    def _channels_of(self, station: Station) -> Channels:
        return self._channels[station.index]

    @property
    def counts(self) -> ChannelCounts:
        """What all channels have done so far."""
        return ChannelCounts(
            sent_again=sum(each.sender.resent for each in self._channels),
            duplicates=sum(each.receiver.duplicates for each in self._channels),
            given_up=sum(each.sender.given_up for each in self._channels),
        )

    def end(self) -> None:
        """Count as done what was in doubt: nothing is on its way any more."""
        for flight in self._doubtful:
            self._end(flight, flight.completed_ns)
        self._doubtful.clear()

    # Notifications

    def _serve_notification(
        self, station: Station, output: Output | None, copy: Copy, now: int
    ) -> None:
        flight: Flight = copy.subject
        flight.completed_ns = max(flight.completed_ns, now)
        flight.matching_ns += self._priced.matching_ns(station, copy)
        if output is None:
            self._channels[station.index].waiting.setdefault(flight.publisher, deque()).append(copy)
            self._let_in(station, now)
        else:
            self._arrive(station, output, copy, now)
        self._stir(station, now)

    def _let_in(self, station: Station, now: int) -> None:
        """Publish what waits, but for what is for hosts that lack too much, and what is behind."""
        channels = self._channels[station.index]
        for publisher, waiting in list(channels.waiting.items()):
            while waiting and not waiting[0].subject.targets & channels.held:
                self._publish(station, waiting.popleft().subject, now)
            if not waiting:
                del channels.waiting[publisher]

    def _publish(self, station: Station, flight: Flight, now: int) -> None:
        channels = self._channels[station.index]
        flight.accepted_ns = now
        flight.excused |= flight.targets & channels.sender.gone
        self._to_publish -= 1
        kept = channels.sender.kept
        notification = Notification(FlightAttributes(flight), self._payload)
        effects = self.brokers[station.index].client_publishes([notification], now)
        flight.outstanding += channels.sender.kept - kept
        self._hand_on(station, effects, 0, now)
        self._pass_on(station, flight, effects, 1, now)

    def _arrive(self, station: Station, output: Output, copy: Copy, now: int) -> None:
        flight: Flight = copy.subject
        channels = self._channels[station.index]
        turned_away = channels.turned_away
        effects = self.brokers[station.index].messages_arrived(
            output.source.broker, [copy.message], now
        )
        handed_on = self._hand_on(station, effects, copy.hops, now)
        is_in = copy.mask & station.bit and channels.turned_away == turned_away
        name = flight.publisher, flight.sequence
        if is_in and name not in handed_on:
            channels.hops.setdefault(name, copy.hops)
        self._pass_on(station, flight, effects, copy.hops + 1, now, copy.attempt)

    def _hand_on(
        self, station: Station, effects: list[Effect], hops: int, now: int
    ) -> Collection[tuple[int, int]]:
        """Deliver what has come, after `hops` links, and what has waited for it; say what."""
        came_over = self._channels[station.index].hops
        by_flight: dict[tuple[int, int], list[Deliver]] = {}
        for effect in effects:
            if isinstance(effect, Deliver):
                flight = flight_of(effect.notification)
                by_flight.setdefault((flight.publisher, flight.sequence), []).append(effect)
        for name, delivered in by_flight.items():
            flight = flight_of(delivered[0].notification)
            self._laws.in_order(flight, station, now)
            self._deliver(station, [*delivered], flight, came_over.pop(name, hops), now)
        return by_flight.keys()

    def lost(self, output: Output, copy: Copy, now: int) -> None:
        """Account for a copy that will never arrive: it is sent again, and nobody is excused."""
        if isinstance(copy.subject, Flight):
            self._end(copy.subject, now)
        else:
            super().lost(output, copy, now)

    @staticmethod
    def _excuse_unreachable(
        flight: Flight, carried: int, effects: list[Effect], broker: Broker, counted: int
    ) -> None:
        """Excuse nobody: it is sent again."""

    def cut(self, output: Output, now: int) -> None:
        """Take one direction of a link down, and lose the posts that are on it."""
        self._cuts[output.index] += 1
        super().cut(output, now)

    # Posts

    def _send(self, station: Station, posts: Sequence[Post], now: int) -> None:
        """Send posts on their way, past the queues; those that find none are said again."""
        here = self._here[station.index]
        for post in posts:
            way = way_of(here, post, now)
            if way is not None:
                output = self._kernel.network.output(station.broker, way[0].link)
                arrive = partial(self._post_arrives, output, self._cuts[output.index], way[1])
                self._kernel.control(now + output.latency_ns, arrive)

    def _post_arrives(self, output: Output, cuts: int, post: Post, now: int) -> None:
        if self._cuts[output.index] != cuts:
            return  # the link was cut meanwhile
        station = output.target
        if post.to != station.index:
            self._send(station, [post], now)
            return
        channels = self._channels[station.index]
        channels.arrived(post, now)
        for flight in channels.take_forgotten():
            self._end(flight, now)
        self._act(station, now)
        self._stir(station, now)

    # What channels have to say

    def _stir(self, station: Station, now: int) -> None:
        """Look at the channels of a station soon: something was sent, or has come."""
        channels = self._channels[station.index]
        opening = channels.sender.take_posts()
        if opening:
            self._send(station, opening, now)
        if not channels.will_look and not channels.is_quiet and not self._is_over:
            channels.will_look = True
            self._kernel.control(now + LOOK_NS, partial(self._look, station))

    @property
    def _is_over(self) -> bool:
        """Whether nobody waits for anything any more; hosts that were given up stay so."""
        return not self._to_publish and not any(
            each.under_way or each.receiver.held for each in self._channels
        )

    def _look(self, station: Station, now: int) -> None:
        channels = self._channels[station.index]
        channels.will_look = False
        gone = channels.sender.gone
        channels.look(now)
        given_up = channels.sender.gone & ~gone
        if given_up:
            self._give_up(channels, given_up, now)
        self._send(station, channels.take_posts(now), now)
        self._act(station, now)
        self._stir(station, now)

    def _give_up(self, channels: StationChannels, targets: int, now: int) -> None:
        """Excuse targets that a host has given up, which may get something all the same."""
        for flight in channels.under_way.values():
            if flight.targets & targets:
                flight.excused |= targets
                flight.outstanding += 1
                self._doubtful.append(flight)
        for flight in channels.take_forgotten():
            self._end(flight, now)

    def _act(self, station: Station, now: int) -> None:
        """Send again and hand on what the channels say, and let in who has waited for room."""
        channels, broker = self._channels[station.index], self.brokers[station.index]
        for message in channels.take_again():
            flight = flight_of(message.notification)
            self._attempts += 1
            flight.outstanding += 1
            effects = broker.send_again([message], now)
            self._pass_on(station, flight, effects, 1, now, self._attempts)
        self._hand_on(station, broker.deliver(channels.take_in_order()), 0, now)
        channels.take_missed()  # what hosts give up is counted by them
        self._let_in(station, now)
