"""Simulators and brokers that do one wrong thing, once, for tests of the laws that must notice.

Each does it with the second notification, or with the second subscription, of SETUP.
"""

from collections.abc import Sequence
from functools import partial
from heapq import heapify, heappush

import numpy as np

from octopis.core.filters.operands import Attributes
from octopis.core.matching import BitsetIndex
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import (
    Broker,
    Deliver,
    Effect,
    LinkStatus,
    Message,
    NotificationMessage,
    Reason,
)
from octopis.core.routing.messages import Subscribe
from octopis.simulator.audience import Broadcast, Copy, Flight
from octopis.simulator.audience_index import FlightAttributes
from octopis.simulator.kernel import Kernel
from octopis.simulator.network import Output, Station
from octopis.simulator.notifying import IdentifiedNotifying, StaticNotifying
from octopis.simulator.subscribing import FloodSubscribing, TwoStepSubscribing
from support.overlays import A0, A1, A2, B0, B1, B2, C0, C1, C2
from support.simulations import MS, Publishes, Setup, Subscribes

SETUP = Setup(
    subscribers=(
        Subscribes("c,0"),
        Subscribes("a,0", "x = 9", 20 * MS),
        Subscribes("b,1", at_ns=40 * MS),
    ),
    publications=tuple(Publishes("a,0", number * MS, number) for number in range(5)),
    seed=13,
)
BEGIN_NS = 50 * MS


def is_second(copy: Copy) -> bool:
    """Tell whether this is a copy of the second notification, or of the second subscription."""
    subject = copy.subject
    return subject.number == 1 if isinstance(subject, Broadcast) else subject.sequence == 1


# Notifications


class SendsBack(StaticNotifying):
    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        if is_second(copy) and output is not None and station.broker == B0:
            self._begin(copy.subject, [output.back])
            self._send(output.back, one_hop_on(copy), now)
        super().serve(station, output, copy, now)


def one_hop_on(copy: Copy) -> Copy:
    return Copy(copy.subject, copy.hops + 1, copy.send_ns, copy.reason, copy.mask)


class SendsIdentificationBack(IdentifiedNotifying):
    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        if is_second(copy) and output is not None and copy.hops < 4:
            self._begin(copy.subject, [output.back])
            self._send(output.back, one_hop_on(copy), now)
        super().serve(station, output, copy, now)


class DeliversTwice(StaticNotifying):
    def _take_in(self, flight: Flight, station: Station, hops: int, now: int) -> None:
        super()._take_in(flight, station, hops, now)
        if flight.sequence == 1 and station.broker == C0:
            flight.audience.reach(flight.row, station.index, now, hops)


class DeliversToAnybody(StaticNotifying):
    def _take_in(self, flight: Flight, station: Station, hops: int, now: int) -> None:
        super()._take_in(flight, station, hops, now)
        if flight.sequence == 1 and station.broker == B0:
            flight.audience.reach(flight.row, station.index, now, hops)


class OmitsCopy(StaticNotifying):
    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        if is_second(copy) and station.broker == B0:
            self._take_in(copy.subject, station, copy.hops, now)
            self._end(copy.subject, now)
        else:
            super().serve(station, output, copy, now)


DETOUR = {A0: A1, A1: A2, A2: B2, B2: C2, C2: C1, C1: B1, B1: B0, B0: C0}
"""To all targets without seeing a broker twice, and far longer than any shortest path."""


class TakesDetour(StaticNotifying):
    def __init__(self, kernel: Kernel, *others: object) -> None:
        super().__init__(kernel, *others)
        self._output = kernel.network.output

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        if not is_second(copy):
            super().serve(station, output, copy, now)
            return
        self._take_in(copy.subject, station, copy.hops, now)
        following = DETOUR.get(station.broker)
        if following is not None:
            way = self._output(station.broker, following)
            self._begin(copy.subject, [way])
            self._send(way, one_hop_on(copy), now)
        self._end(copy.subject, now)


class CopyVanishes(Kernel):
    def _give_slot(self, output: Output, copy: Copy, start: int) -> None:
        super()._give_slot(output, copy, start)
        if is_flight(copy) and is_second(copy) and output.target.broker == C0:
            self._agenda[:] = [entry for entry in self._agenda if entry[2] is not copy]
            heapify(self._agenda)


class CopyComesFromNowhere(Kernel):
    def send(self, output: Output, copy: Copy, now: int) -> None:
        if not self._came_from_nowhere(output, copy, now):
            super().send(output, copy, now)

    def enqueue(self, output: Output, copy: Copy, now: int) -> None:
        if not self._came_from_nowhere(output, copy, now):
            super().enqueue(output, copy, now)

    def _came_from_nowhere(self, output: Output, copy: Copy, now: int) -> bool:
        if is_flight(copy) and is_second(copy) and output.target.broker == C0:
            heappush(self._agenda, (now + output.latency_ns, output.arrival_rank, copy))
            return True
        return False


def is_flight(copy: Copy) -> bool:
    return isinstance(copy.subject, Flight)


class CountsEntriesTwice(LinkStatus):
    __slots__ = ()

    def entered(self, now: int, count: int = 1) -> None:
        super().entered(now, count)
        if BEGIN_NS < now < BEGIN_NS + MS:
            self.entering += 1


class MissesDepartures(LinkStatus):
    __slots__ = ()

    def roll(self, now: int) -> None:
        before = self.queue_length
        super().roll(now)
        if now > BEGIN_NS:
            self.queue_length = max(before, self.queue_length)


# Subscriptions


class SendsSubscriptionTwice(TwoStepSubscribing):
    def _pass_on(self, copy: Copy, ways: list[Output], now: int) -> None:
        again = [way for way in ways if is_second(copy) and way.target.broker == C0]
        super()._pass_on(copy, ways + again, now)


class ForgetsWhatItReceived(FloodSubscribing):
    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        if is_second(copy) and station.broker == B1:
            self._received[1] = self._received.get(1, 0) & ~station.bit
        super().serve(station, output, copy, now)


class SkipsBroker(TwoStepSubscribing):
    def _pass_on(self, copy: Copy, ways: list[Output], now: int) -> None:
        kept = [way for way in ways if not (is_second(copy) and way.target.broker == C1)]
        super()._pass_on(copy, kept, now)


class FloodSkipsBroker(FloodSubscribing):
    def _pass_on(self, copy: Copy, ways: list[Output], now: int) -> None:
        kept = [way for way in ways if not (is_second(copy) and way.target.broker == C1)]
        super()._pass_on(copy, kept, now)


class SpreadsOnDetour(TwoStepSubscribing):
    """From a,0 to b,0 through the next cluster."""

    def __init__(self, kernel: Kernel, *others: object) -> None:
        super().__init__(kernel, *others)
        output = kernel.network.output
        self._detour = {A0: [output(A0, A1)], A1: [output(A1, B1)], B1: [output(B1, B0)]}

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        if is_second(copy):
            self._ledger.stored(copy.subject, station, now, copy.hops)
            self._pass_on(copy, self._detour.get(station.broker, []), now)
        else:
            super().serve(station, output, copy, now)


# The index


class MissesMatch(BitsetIndex):
    def match_numbers(self, batch: Sequence[Attributes]) -> tuple[np.ndarray, np.ndarray]:
        rows, numbers = super().match_numbers(batch)
        keep = ~((rows == 1) & (numbers == 0))
        return rows[keep], numbers[keep]


class FindsTooMuch(BitsetIndex):
    def match_numbers(self, batch: Sequence[Attributes]) -> tuple[np.ndarray, np.ndarray]:
        rows, numbers = super().match_numbers(batch)
        return np.append(rows, 1), np.append(numbers, 1)


# Real brokers


def routes_second(messages: Sequence[Message]) -> bool:
    first = messages[0]
    if not isinstance(first, NotificationMessage):
        return False
    attributes = first.notification.attributes
    assert isinstance(attributes, FlightAttributes)
    return attributes.flight.sequence == 1


class Crooked(Broker):
    """A broker that does something wrong with the second notification."""

    def messages_arrived(
        self, link: BrokerId, messages: Sequence[Message], now_ns: int = 0
    ) -> list[Effect]:
        do_right = partial(super().messages_arrived, now_ns=now_ns)
        if not routes_second(messages):
            return do_right(link, messages)
        return self.do_wrong(link, messages, do_right)

    def do_wrong(self, link, messages, do_right) -> list[Effect]:
        return do_right(link, messages)


class BrokerSendsBack(Crooked):
    def do_wrong(self, link, messages, do_right) -> list[Effect]:
        if self.id == B0:
            self._outbox.send(link, messages[0], Reason.MATCH, BEGIN_NS)
        return do_right(link, messages)


class BrokerIgnores(Crooked):
    def do_wrong(self, link, messages, do_right) -> list[Effect]:
        return [] if self.id == B0 else do_right(link, messages)


class BrokerDeliversTwice(Crooked):
    def do_wrong(self, link, messages, do_right) -> list[Effect]:
        effects = do_right(link, messages)
        return effects + [each for each in effects if isinstance(each, Deliver)]


class BrokerDeliversToAnybody(Crooked):
    def do_wrong(self, link, messages, do_right) -> list[Effect]:
        effects = do_right(link, messages)
        if self.id == C0:
            effects.append(Deliver("c1", messages[0].notification, ["s1"]))
        return effects


class BrokerDeliversToFew(Crooked):
    def do_wrong(self, link, messages, do_right) -> list[Effect]:
        effects = do_right(link, messages)
        for each in effects:
            if isinstance(each, Deliver) and self.id == B1:
                each.subscriptions.pop()
        return effects


class BrokerMiscounts(Broker):
    """Puts a message more into its Link Status Table, and nowhere else."""

    def client_publishes(
        self, notifications: Sequence[Notification], now_ns: int = 0
    ) -> list[Effect]:
        self.link_status[B0].entered(now_ns)
        return super().client_publishes(notifications, now_ns)


class StandsStill(LinkStatus):
    __slots__ = ()

    def finish_window(self, q_in: int, q_out: int) -> None:  # noqa: ARG002 - that is the fault
        super().finish_window(0, 0)


class BrokerMissesWindow(Broker):
    def __init__(self, *facts: object, **options: object) -> None:
        super().__init__(*facts, **options)
        if self.id == C0:
            for link, status in self.link_status.items():
                self.link_status[link] = StandsStill(
                    link, is_icol=status.is_icol, window_ns=SETUP.window_ns
                )


class BrokerKeepsSubscription(Broker):
    """Does not pass the second subscription on."""

    def messages_arrived(
        self, link: BrokerId, messages: Sequence[Message], now_ns: int = 0
    ) -> list[Effect]:
        first = messages[0]
        if self.id == B0 and isinstance(first, Subscribe) and first.subscription.id == "s1":
            return []
        return super().messages_arrived(link, messages, now_ns)
