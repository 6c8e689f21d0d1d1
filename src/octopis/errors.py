"""Every error that OctopiS raises on purpose.

OctopisError                      something went wrong; the message says what, where and what to do
├── InvalidInput                  what the user gave is wrong (exit status 2)
│   ├── InvalidTopology           an overlay that cannot be built
│   │   ├── EmptyFactor           a factor without vertices
│   │   ├── UnknownVertex         an edge or a label names a vertex that is not there
│   │   ├── SelfLoop              an edge from a vertex to itself
│   │   ├── DoubledEdge           the same edge twice
│   │   ├── AmbiguousLabel        a label that could be misread in B(region, cluster)
│   │   ├── AcyclicPropertyError  the acyclic factor is not one connected tree
│   │   │   ├── CycleFound        ... it has a cycle
│   │   │   └── NotConnected      ... it falls into parts
│   │   ├── ConnectivityPropertyError  the connectivity factor is not complete
│   │   ├── IndexPropertyError    cluster indexes are not exactly 0..n-1
│   │   └── LabelOrderError       cluster before region
│   ├── InvalidConfiguration      a file or option that makes no sense
│   ├── InvalidNotification       attributes or payload that cannot be carried
│   ├── InvalidFilter             a condition that cannot be understood
│   ├── InvalidSubscription       a subscription that cannot be made or ended as asked
│   ├── NotPermitted              what the role of whoever asks does not allow
│   ├── NotOpen                   a client or a stream that is used before it is opened, or after
│   └── MissingExtra              a command whose libraries are not installed
└── OperationFailed               the input was right, the work still failed (exit status 1)
    ├── ProtocolError             the other side of a connection does not keep to the protocol
    ├── ConnectionFailed          a broker cannot be reached, or does not take us in
    │   ├── ConnectionLost        ... any more: what was under way may or may not have arrived
    │   └── LoginFailed           ... as it is not proved who somebody is
    ├── StoreFailed               what a broker keeps on disk cannot be read or written
    │   ├── StoreLocked           ... because another process uses the folder
    │   ├── StoreFull             ... because there is no room, on the disk or in its quota
    │   ├── StoreVersion          ... because another version of OctopiS wrote it
    │   └── StoreDamaged          ... because the disk has not kept what was written
    ├── DataLost                  what a streaming query counts on is not there any more
    ├── NotSettled                some brokers have not confirmed that they know all subscriptions
    ├── SparkUnavailable          no Spark can be had: no Java, no cluster there
    ├── SparkDied                 Spark ended before its time: killed, or out of memory
    ├── SweepFailed               some runs of a sweep failed; the others are done
    ├── DeliveriesWrong           a trace does not hold what the ground truth asks for
    └── LawViolated               a simulated run did what no run may do: a fault in OctopiS

Programmer faults are assertions, not errors from this tree.
"""


class OctopisError(Exception):
    """Root of the tree: catch this to catch everything that OctopiS raises on purpose."""

    exit_status = 1

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by message and fields: an error crosses process borders on Spark and in sweeps."""
        return restored, (type(self), self.args, self.__dict__)


def restored(
    kind: type[OctopisError], arguments: tuple[object, ...], fields: dict[str, object]
) -> OctopisError:
    """Return an error as it was on the other side of a process border."""
    # Not by calling `kind`: its arguments are facts, and the message is already made of them.
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(fields)
    return error


class InvalidInput(OctopisError):
    """What the user gave is wrong, and only the user can mend it."""

    exit_status = 2


class OperationFailed(OctopisError):
    """The input was right, but the work could not be done."""


class SparkUnavailable(OperationFailed):
    """No Spark can be had on this machine or at this address."""


class SparkDied(OperationFailed):
    """Spark ended before its time. `memory` is what its Java was allowed to take."""

    def __init__(
        self, reason: str, memory: str, what_next: str = "start the command again"
    ) -> None:
        super().__init__(
            f"Spark has died: {reason}; it had {memory}, and --conf spark.driver.memory=SIZE "
            f"gives it another size; {what_next}"
        )
        self.reason = reason
        self.memory = memory


class SweepFailed(OperationFailed):
    """Some runs of a sweep failed. Their errors are written down, and the others are done."""

    def __init__(self, failed: tuple[str, ...], total: int, example: str) -> None:
        super().__init__(f"{len(failed)} of {total} runs failed; {failed[0]}: {example}")
        self.failed = failed


class DeliveriesWrong(OperationFailed):
    """A trace does not hold exactly what the ground truth asks for."""

    def __init__(self, trace: str, faults: dict[str, int]) -> None:
        counts = ", ".join(f"{count:,} {fault}" for fault, count in faults.items() if count)
        super().__init__(f"the deliveries of {trace} are wrong: {counts}")
        self.faults = faults


class LawViolated(OperationFailed):
    """A run did what no run may do. Scenario, seed and time are enough to see it again."""

    def __init__(  # noqa: PLR0913 - the facts of one violation
        self,
        law: str,
        detail: str,
        *,
        seed: int,
        time_ns: int,
        broker: str,
        notification: tuple[str, int] | None = None,
        subscription: str | None = None,
    ) -> None:
        about = ""
        if notification is not None:
            about = f" (notification {notification[1]} of {notification[0]})"
        elif subscription is not None:
            about = f" (subscription {subscription})"
        super().__init__(
            f"law violated: {law}: {detail}{about}, at broker {broker}, "
            f"{time_ns / 1e9:.9f} s of virtual time, seed {seed}"
        )
        self.law = law
        self.detail = detail
        self.seed = seed
        self.time_ns = time_ns
        self.broker = broker
        self.notification = notification
        self.subscription = subscription


class InvalidTopology(InvalidInput):
    """An overlay that cannot be built."""


class EmptyFactor(InvalidTopology):
    """A factor without vertices."""

    def __init__(self, factor: str) -> None:
        super().__init__(f"the {factor} has no vertices: give it at least one")
        self.factor = factor


class UnknownVertex(InvalidTopology):
    """An edge or a label names a vertex that is not there."""

    def __init__(self, vertex: object, where: str, hint: str = "") -> None:
        super().__init__(f"{where} names {vertex!r}, which is not a vertex{hint}")
        self.vertex = vertex


class SelfLoop(InvalidTopology):
    """An edge from a vertex to itself."""

    def __init__(self, factor: str, vertex: object) -> None:
        super().__init__(f"the {factor} has an edge from {vertex!r} to itself: remove it")
        self.vertex = vertex


class DoubledEdge(InvalidTopology):
    """The same edge twice."""

    def __init__(self, factor: str, edge: tuple[object, object]) -> None:
        super().__init__(f"the {factor} has the edge {edge[0]!r} - {edge[1]!r} twice: keep one")
        self.edge = edge


class AmbiguousLabel(InvalidTopology):
    """A label that could be misread in B(region, cluster)."""

    def __init__(self, label: object, reason: str) -> None:
        super().__init__(f"the region label {label!r} is ambiguous in B(region, cluster): {reason}")
        self.label = label


class AcyclicPropertyError(InvalidTopology):
    """The acyclic factor is not one connected tree."""


class CycleFound(AcyclicPropertyError):
    """The acyclic factor has a cycle."""

    def __init__(self, cycle: tuple[str, ...]) -> None:
        path = " - ".join((*cycle, cycle[0]))
        super().__init__(f"acyclic property: the acyclic factor has the cycle {path}; cut one edge")
        self.cycle = cycle


class NotConnected(AcyclicPropertyError):
    """The acyclic factor falls into parts."""

    def __init__(self, start: str, unreached: tuple[str, ...]) -> None:
        shown = ", ".join(repr(vertex) for vertex in unreached[:5])
        more = f" and {len(unreached) - 5} more" if len(unreached) > 5 else ""
        super().__init__(
            f"acyclic property: the acyclic factor is not connected; "
            f"no path leads from {start!r} to {shown}{more}"
        )
        self.start = start
        self.unreached = unreached


class ConnectivityPropertyError(InvalidTopology):
    """The connectivity factor is not a complete graph."""

    def __init__(self, edge: tuple[int, int], missing: int) -> None:
        more = f" ({missing} edges are missing in all)" if missing > 1 else ""
        super().__init__(
            f"connectivity property: the connectivity factor must be complete, "
            f"but has no edge {edge[0]} - {edge[1]}{more}"
        )
        self.edge = edge
        self.missing = missing


class IndexPropertyError(InvalidTopology):
    """Cluster indexes are not exactly the integers 0 to n-1."""

    def __init__(self, index: object, reason: str) -> None:
        super().__init__(f"index property: {reason}")
        self.index = index


class LabelOrderError(InvalidTopology):
    """Cluster before region, or the factors in the wrong order."""

    def __init__(self, label: str, reason: str) -> None:
        super().__init__(f"label order property: {reason}")
        self.label = label


class InvalidConfiguration(InvalidInput, ValueError):
    """A file or an option that makes no sense.

    Also a ValueError: a struct that refuses its values raises it, and what decodes the struct
    catches ValueErrors to say where in the document that was.
    """


class InvalidNotification(InvalidInput):
    """Attributes or a payload that cannot be carried."""


class InvalidFilter(InvalidInput):
    """A subscription that cannot be understood.

    `column` counts characters from 1; it is None where no single place is at fault. `hint` says
    what stands there instead, or what may have been meant.
    """

    def __init__(self, reason: str, column: int | None = None, hint: str = "") -> None:
        place = "" if column is None else f" at column {column}"
        super().__init__(f"{reason}{place}{hint}")
        self.reason = reason
        self.column = column
        self.hint = hint


class InvalidSubscription(InvalidInput):
    """A subscription that cannot be made or ended as asked."""

    def __init__(self, reason: str, subscription: str, epoch: int | None = None) -> None:
        super().__init__(reason)
        self.subscription = subscription
        self.epoch = epoch
        """The number of its last move, where that is what stands against this one."""


class NotPermitted(InvalidInput):
    """What the role of whoever asks does not allow."""


class NotOpen(InvalidInput):
    """A client or a stream is used before it is opened, or after it was closed."""


def how_to_install(extra: str) -> str:
    """Return what to type for an extra: where the package is installed, and in a checkout."""
    return f"pip install 'octopis[{extra}]' (in a checkout: pip install -e '.[{extra}]')"


class MissingExtra(InvalidInput):
    """A command needs a library that `pip install octopis` leaves out."""

    def __init__(self, command: str, library: str, extra: str) -> None:
        super().__init__(f"{command} needs {library}: {how_to_install(extra)}")
        self.extra = extra


class ProtocolError(OperationFailed):
    """The other side of a connection does not keep to the protocol."""


class ConnectionFailed(OperationFailed):
    """A broker cannot be reached, or does not take us in."""


class ConnectionLost(ConnectionFailed):
    """The connection broke, or was closed, before an answer came.

    `publications` were not accepted yet: each of them may or may not have been delivered.
    """

    def __init__(self, reason: str, publications: int = 0) -> None:
        fate = f"; {publications:,} publications may or may not have been delivered"
        super().__init__(f"{reason}{fate if publications else ''}")
        self.reason = reason
        self.publications = publications


class LoginFailed(ConnectionFailed):
    """Somebody's identity is not proved; to try again with the same does not help."""


class DataLost(OperationFailed):
    """What a streaming query counts on, by its checkpoint, is not there any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"data was lost: {reason}; to go on without it, set failOnDataLoss to false; to begin "
            "anew, give the query another checkpointLocation"
        )
        self.reason = reason


class NotSettled(OperationFailed):
    """Brokers have not confirmed in time that they know all subscriptions made before.

    What is published now may miss subscribers. `brokers` are those that have not confirmed, as in
    b,2; none where not even the client's own broker has answered.
    """

    def __init__(self, brokers: tuple[str, ...] = ()) -> None:
        few = " ".join(brokers[:8]) + (f" and {len(brokers) - 8} more" if len(brokers) > 8 else "")
        who = f"no word in time from {few}" if brokers else "the broker has not answered in time"
        super().__init__(f"not every broker is known to know all subscriptions: {who}")
        self.missing = "\n".join(brokers)  # as one text, so that it crosses the wire

    @property
    def brokers(self) -> tuple[str, ...]:
        """The brokers that have not confirmed."""
        return tuple(self.missing.split("\n")) if self.missing else ()


class StoreFailed(OperationFailed):
    """What a broker keeps on disk cannot be read or written."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(f"the store in {folder}: {reason}")
        self.folder = folder
        self.reason = reason


class StoreLocked(StoreFailed):
    """Another process uses the folder."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            folder, "another process uses it: stop that one first, or give another folder"
        )


class StoreFull(StoreFailed):
    """There is no room, on the disk or in its quota. It may be tried again."""


class StoreVersion(StoreFailed):
    """Another version of OctopiS wrote the folder, in a form that this one does not know."""

    def __init__(self, folder: str, found: object, known: int) -> None:
        super().__init__(
            folder,
            f"it has format version {found}, and this OctopiS knows version {known}: use the "
            "OctopiS that wrote it, or give another folder",
        )
        self.found = found


class StoreDamaged(StoreFailed):
    """The disk has not kept what was written."""
