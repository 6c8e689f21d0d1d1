"""The path tree of one notification: every copy, over which link and why; and what was lost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.messages import Reason
from octopis.core.topology import LinkKind
from octopis.explain.question import Question

ALONG_THE_TREE = "along the tree"

_BRIEFLY = {
    Reason.TARGET: ALONG_THE_TREE,
    Reason.LATE: "crossed late",
    Reason.EARLY: "crossed early",
    Reason.AROUND_OVERLOAD: "around overload",
    Reason.AROUND_FAULT: "around a fault",
    Reason.WAITS: "waits",
}


class Hop(NamedTuple):
    """A copy that went over a link, and the subscribers that it reached at the other end.

    `after` is the position of the hop that brought the notification to `source`; None at the
    publisher's host. `targets` are the brokers that it is still for (BID, TNR), `tried` the
    clusters from which it was sent around in this region, and `tried_down` those of them where its
    way was down (TNR).
    """

    after: int | None
    source: BrokerId
    target: BrokerId
    kind: LinkKind
    reason: Reason
    cbv_p: ClusterBitVector
    targets: tuple[BrokerId, ...]
    tried: tuple[int, ...]
    tried_down: tuple[int, ...]
    overloaded: bool
    reached: tuple[str, ...]


class Loss(NamedTuple):
    """A copy that was for a link that is down; `after` is as in a hop."""

    after: int | None
    source: BrokerId
    target: BrokerId
    kind: LinkKind
    cbv_p: ClusterBitVector
    targets: tuple[BrokerId, ...]


class Unreachable(NamedTuple):
    """Targets to which no way led on from a broker (TNR); `after` is as in a hop."""

    after: int | None
    broker: BrokerId
    targets: tuple[BrokerId, ...]


@dataclass(frozen=True)
class RouteExplanation:
    """The answer: the hops in the order of travel, so that a hop stands behind its `after`."""

    question: Question
    algorithm: Algorithm
    hops: tuple[Hop, ...]
    reached_at_host: tuple[str, ...]
    cases: Mapping[str, int]
    """How often each case of dynamic routing came up, or copies of target routing by reason."""
    losses: tuple[Loss, ...] = ()
    unreachable: tuple[Unreachable, ...] = ()

    @property
    def ims(self) -> int:
        """The inter-broker messages of the notification."""
        return len(self.hops)

    def bits(self, hop: Hop | Loss) -> str:
        """The CBV_p of a copy as the paper writes it, or "" where it carries none."""
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

    @property
    def lost(self) -> list[str]:
        """The subscribers that should have got the notification, and did not."""
        paths = self.paths
        return [each.name for each in self.question.interested if each.name not in paths]

    @property
    def decisions(self) -> dict[str, int]:
        """How often each case, or each reason of target routing, came up, in a word or two."""
        if self.algorithm is not Algorithm.TNR:
            return {f"case {name}": count for name, count in self.cases.items()}
        found = {Reason(name): count for name, count in self.cases.items()}
        return {brief: found[each] for each, brief in _BRIEFLY.items() if each in found}

    def _path(self, last: Hop) -> tuple[BrokerId, ...]:
        path, hop = [last.target], last
        while hop.after is not None:
            hop = self.hops[hop.after]
            path.append(hop.target)
        return self.question.publisher, *reversed(path)


def as_document(explanation: RouteExplanation) -> dict[str, Any]:
    """Return the explanation as plain values, for JSON.

    Hops are numbered from 1; 0 is the host.
    """
    question, paths, lost = explanation.question, explanation.paths, explanation.lost
    return {
        "algorithm": explanation.algorithm.value,
        "publisher": question.publisher.short,
        "notification": question.notification.attributes,
        "ims": explanation.ims,
        "cases": dict(explanation.cases),
        "reached_at_host": list(explanation.reached_at_host),
        "hops": [
            _hop_document(explanation, number, hop)
            for number, hop in enumerate(explanation.hops, 1)
        ],
        "lost": [
            {
                "after": _number(loss.after),
                "source": loss.source.short,
                "target": loss.target.short,
                "kind": loss.kind.value,
                "cbv_p": explanation.bits(loss) or None,
                **_carried(explanation, loss.targets),
            }
            for loss in explanation.losses
        ],
        "unreachable": [
            {
                "after": _number(after),
                "broker": broker.short,
                "targets": [each.short for each in targets],
            }
            for after, broker, targets in explanation.unreachable
        ],
        "subscribers": [
            {
                "name": name,
                "broker": broker.short,
                "filter": str(filter_),
                "reached": name in paths,
                "lost": name in lost,
                "path": [each.short for each in paths.get(name, ())],
            }
            for name, broker, filter_ in question.subscribers
        ],
    }


def _hop_document(explanation: RouteExplanation, number: int, hop: Hop) -> dict[str, Any]:
    return {
        "hop": number,
        "after": _number(hop.after),
        "source": hop.source.short,
        "target": hop.target.short,
        "kind": hop.kind.value,
        "reason": hop.reason.value,
        "in_words": hop.reason.in_words,
        "cbv_p": explanation.bits(hop) or None,
        **_carried(explanation, hop.targets),
        "tried": list(hop.tried),
        "tried_down": list(hop.tried_down),
        "overloaded": hop.overloaded,
        "reached": list(hop.reached),
    }


def _number(after: int | None) -> int:
    return 0 if after is None else after + 1


def _carried(explanation: RouteExplanation, targets: tuple[BrokerId, ...]) -> dict[str, list[str]]:
    """Return what a copy carries under the name that its algorithm has for it."""
    shown = [each.short for each in targets]
    is_ours = explanation.algorithm is Algorithm.TNR
    return {"bids": [] if is_ours else shown, "targets": shown if is_ours else []}
