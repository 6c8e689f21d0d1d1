"""The path tree of one notification: every copy, over which link, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.messages import Reason
from octopis.core.topology import LinkKind
from octopis.explain.question import Question


class Hop(NamedTuple):
    """A copy that went over a link, and the subscribers that it reached at the other end.

    `after` is the position of the hop that brought the notification to `source`; None at the
    publisher's host.
    """

    after: int | None
    source: BrokerId
    target: BrokerId
    kind: LinkKind
    reason: Reason
    cbv_p: ClusterBitVector
    bids: tuple[BrokerId, ...]
    overloaded: bool
    reached: tuple[str, ...]


@dataclass(frozen=True)
class RouteExplanation:
    """The answer: the hops in the order of travel, so that a hop stands behind its `after`."""

    question: Question
    algorithm: Algorithm
    hops: tuple[Hop, ...]
    reached_at_host: tuple[str, ...]
    cases: Mapping[str, int]
    """How often each case of dynamic routing came up."""

    @property
    def ims(self) -> int:
        """The inter-broker messages of the notification."""
        return len(self.hops)

    def bits(self, hop: Hop) -> str:
        """The hop's CBV_p as the paper writes it, or "" where it carries none."""
        return hop.cbv_p.bits(len(self.question.scot.clusters)) if hop.cbv_p else ""

    @property
    def paths(self) -> dict[str, tuple[BrokerId, ...]]:
        """The brokers on the way to each subscriber that was reached."""
        found: dict[str, tuple[BrokerId, ...]] = {}
        found |= dict.fromkeys(self.reached_at_host, (self.question.publisher,))
        for hop in self.hops:
            found |= {name: self._path(hop) for name in hop.reached}
        names = (name for name, _, _ in self.question.subscribers)
        return {name: found[name] for name in names if name in found}

    def _path(self, last: Hop) -> tuple[BrokerId, ...]:
        path, hop = [last.target], last
        while hop.after is not None:
            hop = self.hops[hop.after]
            path.append(hop.target)
        return self.question.publisher, *reversed(path)


def as_document(explanation: RouteExplanation) -> dict[str, Any]:
    """Return the explanation as plain values, for JSON; hops are numbered from 1, 0 is the host."""
    question, paths = explanation.question, explanation.paths
    return {
        "algorithm": explanation.algorithm.value,
        "publisher": question.publisher.short,
        "notification": question.notification.attributes,
        "ims": explanation.ims,
        "cases": dict(explanation.cases),
        "reached_at_host": list(explanation.reached_at_host),
        "hops": [
            {
                "hop": number,
                "after": 0 if hop.after is None else hop.after + 1,
                "source": hop.source.short,
                "target": hop.target.short,
                "kind": hop.kind.value,
                "reason": hop.reason.value,
                "in_words": hop.reason.in_words,
                "cbv_p": explanation.bits(hop) or None,
                "bids": [bid.short for bid in hop.bids],
                "overloaded": hop.overloaded,
                "reached": list(hop.reached),
            }
            for number, hop in enumerate(explanation.hops, 1)
        ],
        "subscribers": [
            {
                "name": name,
                "broker": broker.short,
                "filter": str(filter_),
                "reached": name in paths,
                "path": [each.short for each in paths.get(name, ())],
            }
            for name, broker, filter_ in question.subscribers
        ],
    }
