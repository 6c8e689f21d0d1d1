"""Who knows the subscriptions that this broker has accepted: marks, and who has confirmed them.

A mark (messages.Mark) goes where the subscriptions of its broker go, on the same queues and so
behind them. Whoever gets it knows all that stood before it, and confirms it over the link that it
came from. Confirmations go past the queues; those of one mark are joined on their way back.

A confirmation of an older mark is passed on like any other: who retries because a mark was lost
must not make worthless what is on its way. It follows the way of the newest mark, and from there on
only brokers that have heard of as new a mark or a newer one; so it never goes round in a circle.
"""

import msgspec

from octopis.core.model import BrokerId


class Confirmed(msgspec.Struct, frozen=True):
    """These brokers (as bits) know all that stands before a mark of `host`."""

    host: BrokerId
    number: int
    brokers: int


class Marks:
    """The own marks, and the confirmations of others' marks that come past here.

    `first_number` must be above every number that this broker has used before a restart.
    """

    def __init__(self, broker: BrokerId, first_number: int) -> None:
        self.newest = first_number
        """The number of the newest own mark; before the first, of none."""

        self.made_ns = 0
        """When it was made."""

        self._broker = broker
        self._oldest = first_number + 1
        self._confirmed: dict[int, int] = {}  # brokers, as bits, by the own mark they confirmed
        self._ways: dict[BrokerId, tuple[int, BrokerId]] = {}
        self._waiting: dict[BrokerId, Confirmed] = {}
        self._ready: list[tuple[BrokerId, Confirmed]] = []

    def make(self, now_ns: int) -> int:
        """Return the number of a new mark."""
        self.newest += 1
        self.made_ns = now_ns
        return self.newest

    def known_by(self, number: int) -> int:
        """Return the brokers, as bits, that have confirmed an own mark or a newer one."""
        found = 0
        for each, brokers in self._confirmed.items():
            if each >= number:
                found |= brokers
        return found

    def forget_before(self, number: int) -> None:
        """Keep nothing of own marks that nobody asks for any more."""
        self._oldest = max(self._oldest, number)
        for old in [each for each in self._confirmed if each < number]:
            del self._confirmed[old]

    def came(self, host: BrokerId, number: int, link: BrokerId) -> None:
        """Note over which link the newest mark of a host has come."""
        self._ways[host] = number, link

    def confirm(self, confirmed: Confirmed) -> None:
        """Take a confirmation in: for an own mark, or to be passed on by `take`."""
        host, number = confirmed.host, confirmed.number
        if host == self._broker:
            if self._oldest <= number <= self.newest:
                self._confirmed[number] = self._confirmed.get(number, 0) | confirmed.brokers
            return
        newest, way = self._ways.get(host, (-1, host))
        if number > newest:
            return  # the mark came past here before a restart: whoever waits asks again
        waiting = self._waiting.get(host)
        if waiting is None:
            self._waiting[host] = confirmed
        elif waiting.number == number:
            self._waiting[host] = Confirmed(host, number, waiting.brokers | confirmed.brokers)
        else:
            self._ready.append((way, waiting))
            self._waiting[host] = confirmed

    def take(self) -> list[tuple[BrokerId, Confirmed]]:
        """Return the confirmations to send, each with its link."""
        found = [*self._ready, *((self._ways[h][1], each) for h, each in self._waiting.items())]
        self._ready, self._waiting = [], {}
        return found
