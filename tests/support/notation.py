"""Brokers and links in tests, written as in the paper: "a,0>b,0 b,0>c,0"."""

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.explain.question import AskedSubscriber, Direction


def broker(text: str) -> BrokerId:
    return BrokerId.parse(text)


def links(text: str) -> set[Direction]:
    """Return directed links; each is named once."""
    pairs = [tuple(map(broker, link.split(">"))) for link in text.split()]
    assert len(set(pairs)) == len(pairs)
    return {(source, target) for source, target in pairs}


def subscriber(name: str, place: str, wanted: str = "TRUE") -> AskedSubscriber:
    return AskedSubscriber(name, broker(place), parse_filter(wanted))
