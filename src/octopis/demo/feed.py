"""The high-rate publisher's part of a scenario."""

from dataclasses import dataclass

from octopis.demo.workload import SPEED
from octopis.model import BrokerId, Value
from octopis.wire.published import encode_published
from octopis.workload.folder import Scenario
from octopis.workload.tables import Subscriber


@dataclass(frozen=True)
class Feed:
    """What the high-rate publisher sends, from where, when, and who wants it."""

    host: BrokerId
    example: dict[str, Value]
    subscribers: list[Subscriber]
    begin_s: float
    end_s: float
    """Seconds after the start of a play, at the demonstration's speed."""

    count: int
    bytes_each: float
    """What one of its notifications takes on a link, on average."""

    @property
    def per_s(self) -> float:
        """How many notifications it sends a second."""
        return (self.count - 1) / (self.end_s - self.begin_s)


def read_feed(scenario: Scenario) -> Feed:
    """Return the feed of a scenario that has a high-rate publisher with several notifications."""
    number, publisher = next(
        (number, each) for number, each in enumerate(scenario.publishers) if each.high_rate
    )
    sent = [
        (due_ns, attributes)
        for batch in scenario.publications()
        for author, _, due_ns, attributes in zip(*batch, strict=True)
        if author == number
    ]
    # The time that is really sent is since 1970, which takes eight bytes.
    sizes = [
        len(encode_published(attributes, b"", publisher.name, sequence, 2**60 + due_ns))
        for sequence, (due_ns, attributes) in enumerate(sent, 1)
    ]
    example = sent[0][1]
    return Feed(
        host=publisher.broker,
        example=example,
        subscribers=[each for each in scenario.subscribers if each.wanted.matches(example)],
        begin_s=sent[0][0] / 1e9 / SPEED,
        end_s=sent[-1][0] / 1e9 / SPEED,
        count=len(sent),
        bytes_each=sum(sizes) / len(sizes),
    )
