"""Whether a broker that has just started knows what its neighbours know.

Under SNR and DNR each neighbour begins with a TableSnapshot. Under BID it begins with a
HostVersions, and then the hosts that it names flood their subscriptions anew.
"""

from collections.abc import Iterable

from octopis.core.model import BrokerId
from octopis.core.routing.messages import HostState, HostVersions, Message, TableSnapshot


class InitialSync:
    """What has been heard over which link."""

    def __init__(self, broker: BrokerId, links: Iterable[BrokerId]) -> None:
        self._broker = broker
        self._silent = set(links)
        self._wanted: dict[BrokerId, int] = {}
        self._heard: dict[BrokerId, int] = {}

    @property
    def is_complete(self) -> bool:
        """Whether every neighbour has said all that it had to say."""
        return not self._silent and not self._wanted

    @property
    def missing(self) -> list[BrokerId]:
        """The neighbours and hosts that have not been heard."""
        return sorted(self._silent | self._wanted.keys())

    def arrived(self, link: BrokerId, messages: Iterable[Message]) -> None:
        """Take in what a neighbour has said."""
        for message in messages:
            if isinstance(message, TableSnapshot):
                self._silent.discard(link)
            elif isinstance(message, HostVersions):
                self._silent.discard(link)
                self._want(message)
            elif isinstance(message, HostState):
                self._heard[message.host] = message.generation
                if self._wanted.get(message.host, message.generation + 1) <= message.generation:
                    del self._wanted[message.host]

    def _want(self, hello: HostVersions) -> None:
        for host, (generation, sequence, _) in hello.known.items():
            least = max(1, generation)
            if (
                host != self._broker
                and (generation, sequence) != (0, 0)
                and self._heard.get(host, 0) < least
            ):
                self._wanted[host] = max(least, self._wanted.get(host, 0))
