"""Failed logins by address: each makes the next answer to that address wait longer.

A broker answers a wrong login and a right password only after `delay`; tokens and certificates, of
which nobody guesses one, let in at once. Right ones do not take the failures away: whoever has one
account could else try passwords of another between logins of its own. Only time does, one failure
after each `FORGET_S` without another.

Passwords of one address wait for each other (`turn`): else as many could be tried in one delay as
an address may have connections.
"""

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache

FIRST_S, MOST_S = 0.1, 5.0
FORGET_S = 60.0
ADDRESSES_MAX = 10_000
_DOUBLINGS = 6  # 0.1 s doubled six times is past 5 s


@dataclass(slots=True)
class _Failures:
    count: int
    since: float
    """When the latest was, or when the latest was forgotten."""

    free_at: float = 0.0
    """When the next password may be looked at."""


class FailedLogins:
    """How often logins from each address have failed lately. Times are of any steady clock."""

    def __init__(self, addresses_max: int = ADDRESSES_MAX) -> None:
        self._addresses_max = addresses_max
        self._table: OrderedDict[str, _Failures] = OrderedDict()
        self.total = 0
        """All failures ever."""

    def __len__(self) -> int:
        return len(self._table)

    def failed(self, address: str, now: float) -> None:
        """Count a failure."""
        self.total += 1
        place = place_of(address)
        found = self._found(place, now) or _Failures(0, now)
        found.count = min(found.count + 1, _DOUBLINGS + 1)
        found.since = now
        self._table[place] = found
        self._table.move_to_end(place)
        if len(self._table) > self._addresses_max:
            self._table.popitem(last=False)  # that with the oldest failure

    def delay(self, address: str, now: float) -> float:
        """Return how many seconds the answer to a login from there is to wait."""
        found = self._found(place_of(address), now)
        return 0.0 if found is None else min(MOST_S, FIRST_S * 2.0 ** (found.count - 1))

    def turn(self, address: str, now: float, latest: float) -> float | None:
        """Return how many seconds the answer to a password from there is to wait: it has its turn.

        None where those before it take until `latest`, when it has to be answered: then it must not
        be looked at. The next one waits for all of the delay, however soon this one is answered.
        """
        found = self._found(place_of(address), now)
        if found is None:
            return 0.0
        begins = max(now, found.free_at)
        if begins > latest:
            return None
        found.free_at = begins + self.delay(address, now)
        return max(0.0, min(found.free_at, latest) - now)

    def _found(self, place: str, now: float) -> _Failures | None:
        found = self._table.get(place)
        if found is None:
            return None
        forgotten = int(max(0.0, now - found.since) / FORGET_S)
        found.count -= forgotten
        found.since += forgotten * FORGET_S
        if found.count <= 0:
            del self._table[place]
            return None
        return found


@lru_cache(1_024)  # it is asked for each request at a gateway, and takes some microseconds
def place_of(address: str) -> str:
    """Return what is counted by address: of IPv6, the network of 64 bits that is one host's."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # no address of the internet
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((found, 64), strict=False))
