"""A path of the matrix: verbs, each tried by one person, and told whether it was allowed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from octopis import SyncClient
from support.matrix.ground import SAMPLES, Ground, Person
from support.matrix.refusals import may

WIDE = (
    "TRUE",
    "NOT (price < 100)",
    "kind IS NULL OR kind = 'secret' OR NOT (kind = 'secret')",
    "price IS NULL OR price >= 100 OR tenant <> 'a'",
)
"""What is asked for by somebody who wants to see more than the role allows."""

OFFERS: dict[str, dict[str, Any]] = {
    "publish an offer": {"kind": "offer", "price": 7},
    "publish a secret": {"kind": "secret", "price": 7},
    "publish one without a kind": {"price": 7},
    "publish as the tenant b": {"kind": "offer", "price": 7, "tenant": "b"},
}
AT_ONCE = 8
"""Verbs of one person that are tried at a time."""

Probe = Callable[[Ground, Person], bool]


class Path(ABC):
    """A way to the overlay. `probes` are the verbs that it has, but for those about seeing."""

    is_lasting = False
    """Whether it goes through a disk: then one needs durable = true as well."""

    @abstractmethod
    def probes(self) -> Mapping[str, Probe]:
        """Return the verbs that this path has, and how each is tried."""

    @abstractmethod
    def look(self, ground: Ground, person: Person) -> set[str]:
        """Ask for everything, and return the samples that came. Raises what is refused."""

    def verbs(self) -> list[str]:
        """Return all that can be tried here."""
        return ["subscribe", *SAMPLES, *self.probes()]

    def tried(self, ground: Ground, person: Person) -> dict[str, bool | BaseException]:
        """Try everything, and return what was allowed, or what went wrong."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            looking = pool.submit(self._looked, ground, person)
            trying = {
                verb: pool.submit(probe, ground, person) for verb, probe in self.probes().items()
            }
        found = {verb: each.exception() or each.result() for verb, each in trying.items()}
        failure = looking.exception()
        seen = chain(("subscribe",), SAMPLES)
        return found | {verb: failure or looking.result()[verb] for verb in seen}

    def _looked(self, ground: Ground, person: Person) -> dict[str, bool]:
        seen: set[str] = set()
        subscribed = may(lambda: seen.update(self.look(ground, person)))
        return {"subscribe": subscribed, **{name: name in seen for name in SAMPLES}}


def publishing(publish: Callable[[Ground, Person, dict[str, Any]], object]) -> dict[str, Probe]:
    """Return the verbs about publishing: allowed is what arrives as it was said."""

    def probe(attributes: dict[str, Any]) -> Probe:
        def tried(ground: Ground, person: Person) -> bool:
            cell = ground.cell()
            said = may(lambda: publish(ground, person, {**attributes, "cell": cell}))
            arrived = ground.arrived(cell, person)
            assert len(arrived) == said, "what is refused does not arrive, and all else does"
            return any(attributes.items() <= each.items() for each in arrived)

        return tried

    return {verb: probe(attributes) for verb, attributes in OFFERS.items()}


def taken(received: Any, cell: int, seen: set[str]) -> bool:
    """Note a notification of this cell, and tell whether it was the last one."""
    if received["cell"] == cell and "sample" in received:
        seen.add(received["sample"])
    return received["cell"] == cell and "sample" not in received


def own_durable(ground: Ground, person: Person) -> str:
    """Make a durable subscription of this person's with something in it, if that is allowed."""
    name = f"own-{ground.cell()}"

    def make() -> None:
        with ground.sync(person) as client, client.subscribe(*("price > 0",), durable=name):
            client.settled()
            ground.publish_samples(ground.cell())

    may(make)
    return name


def on_anothers(act: Callable[[Ground, Person, str], object], *, bare: bool = True) -> Probe:
    """Return the verb that does something to the victim's, by every name that it may have.

    Without `bare`, by the one alone under which lists have it.
    """

    def tried(ground: Ground, person: Person) -> bool:
        victim = ground.person("victim")
        name = own_durable(ground, victim)
        with ground.sync(victim) as client:
            before = client.read(name, 0, wait_s=10)
            own = bare and may(lambda: act(ground, person, name))
            below = may(lambda: act(ground, person, f"victim/{name}"))
            assert own or below or _is_same(client, name, before), "it was refused, and done"
        return own or below

    return tried


def _is_same(client: SyncClient, name: str, before: Any) -> bool:
    (info,) = [each for each in client.durables() if each.name == name]
    after = client.read(name, 0)
    count = len(before.notifications)
    return info.acked == 0 and after.notifications[:count] == before.notifications
