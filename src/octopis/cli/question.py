"""A question to the explainer, from the command line or from a TOML file.

overlay = "figure-7"               # a name from `octopis topology list`, or a TOML file
publish = "b,2"                    # the publisher's broker
notification = { price = 12 }
overloaded = ["b,2:b,0"]           # links in one direction, from:to
dead = ["a,1"]                     # brokers that are gone
cut = ["b,1:c,1"]                  # links that are gone, in both directions

[subscribers]
S1 = "c,0: price > 10"             # broker: filter

[queues]
"b,2:c,2" = 0                      # messages that wait for a link
"""

import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from octopis.cli import output
from octopis.cli.topology import load
from octopis.core.filters import parse_filter
from octopis.core.model import Notification, Value
from octopis.core.toml import decode
from octopis.core.topology import SCOT, NamedTopology
from octopis.errors import InvalidConfiguration, InvalidFilter, InvalidInput, InvalidSubscription
from octopis.explain.question import AskedSubscriber, Direction, Question

# Clusters come last in brokers, and neither part has a comma: so nothing here can be misread.
_BROKER = r"\s*(B\s*\([^()]*\)|[^,]*,\s*[^,:>=\s]*?)\s*"
_SUBSCRIBER = re.compile(rf"([^=]*)={_BROKER}(?::(.*))?", re.DOTALL)
_LINK = re.compile(rf"{_BROKER}(?::|->|>){_BROKER}")


class _Document(Struct, frozen=True):
    overlay: str
    publish: str
    notification: dict[str, Value] = {}
    subscribers: dict[str, str] = {}
    overloaded: list[str] = []
    dead: list[str] = []
    cut: list[str] = []
    queues: dict[str, int] = {}


def from_words(  # noqa: PLR0913 - the parts of one question
    topology: NamedTopology,
    *,
    publish: str,
    notification: Notification,
    subscribers: Iterable[str],
    overloaded: Iterable[str],
    queues: Iterable[str],
    dead: Iterable[str],
    cut: Iterable[str],
) -> Question:
    """Return the question that the words of the command line ask."""
    scot = topology.scot
    lengths = dict(_queue(scot, text) for text in queues)
    return Question(
        scot,
        scot.broker(publish),
        notification,
        tuple(_subscriber(scot, text) for text in subscribers),
        frozenset(_link(scot, text) for text in overloaded),
        lengths,
        frozenset(scot.broker(text) for text in dead),
        frozenset(_link(scot, text) for text in cut),
    )


def from_file(path: Path) -> tuple[NamedTopology, Question]:
    """Return the overlay and the question that a file asks."""
    document = decode(output.read_text(path), _Document, str(path))
    try:
        topology = load(document.overlay)
        return topology, from_words(
            topology,
            publish=document.publish,
            notification=Notification.checked(document.notification),
            subscribers=(f"{name}={text}" for name, text in document.subscribers.items()),
            overloaded=document.overloaded,
            queues=(f"{link}={length}" for link, length in document.queues.items()),
            dead=document.dead,
            cut=document.cut,
        )
    except InvalidInput as failure:
        raise InvalidConfiguration(f"{path}: {failure}") from failure


def _subscriber(scot: SCOT, text: str) -> AskedSubscriber:
    found = _SUBSCRIBER.fullmatch(text)
    if found is None or not found[1].strip():
        raise InvalidSubscription(
            f'write a subscriber as name=broker:filter, such as "S1=c,0:price > 10", not {text!r}',
            text,
        )
    name, broker, filter_ = found[1].strip(), found[2], (found[3] or "TRUE").strip()
    try:
        return AskedSubscriber(name, scot.broker(broker), parse_filter(filter_))
    except InvalidFilter as failure:
        raise InvalidSubscription(f"the filter of {name}: {failure}", name) from failure


def _link(scot: SCOT, text: str) -> Direction:
    found = _LINK.fullmatch(text)
    if found is None:
        raise InvalidConfiguration(f"write a link as from:to, such as b,2:b,0, not {text!r}")
    return scot.broker(found[1]), scot.broker(found[2])


def _queue(scot: SCOT, text: str) -> tuple[Direction, int]:
    link, _, length = text.rpartition("=")
    if not re.fullmatch(r"\s*-?\d{1,12}\s*", length):
        raise InvalidConfiguration(
            f"write a queue as from:to=messages, such as b,2:c,2=5, not {text!r}"
        )
    return _link(scot, link), int(length)
