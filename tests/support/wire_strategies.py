"""Hypothesis strategies for what crosses the wire."""

from hypothesis import strategies as st

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.marks import Confirmed
from octopis.core.routing.messages import (
    Flooded,
    HeardVersions,
    HostChange,
    HostState,
    HostTable,
    HostVersions,
    Mark,
    NotificationMessage,
    Refresh,
    Subscribe,
    Subscription,
    TableSnapshot,
    Unsubscribe,
)
from octopis.core.routing.settling import Inquiry, Report
from octopis.core.wire.published import decode_published, encode_published

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
counts = st.integers(0, 2**63 - 1)
broker_ids = st.builds(BrokerId, texts, st.integers(0, 200))
bit_vectors = st.integers(0, 2**100).map(ClusterBitVector)
filters = st.sampled_from(
    [
        parse_filter(text)
        for text in (
            "x > 1",
            "x BETWEEN 1 AND 2 AND symbol = 'it''s'",
            "name LIKE 'a%_b' OR NOT (y < 1.5e300)",
            "x IN (1, 2, 3) AND flag = TRUE",
            "note IS NULL AND \"odd name\" <> 'é'",
        )
    ]
)
values = st.one_of(
    texts,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)
attributes = st.dictionaries(texts.filter(bool), values, max_size=8)


def published(*fields):
    """Return a notification as it is after it has crossed the wire once."""
    encoded = encode_published(*fields)
    return decode_published(b"\x91" + encoded)[0]


notifications = st.builds(
    published, attributes, st.binary(max_size=50), texts, counts, st.integers(-(2**63), 2**63 - 1)
)
steps = st.integers(0, 2**62)
subscriptions = st.builds(Subscription, texts.filter(bool), filters, steps, texts)
subscribes = st.builds(Subscribe, subscriptions, bit_vectors, broker_ids)
routed = st.builds(
    NotificationMessage, notifications, bit_vectors, st.integers(0, 2**200)
) | st.builds(NotificationMessage, notifications)
sets = st.integers(0, 2**200)
messages = st.one_of(
    routed,
    subscribes,
    st.builds(Unsubscribe, texts),
    st.builds(TableSnapshot, st.lists(subscribes, max_size=5).map(tuple), st.booleans()),
    st.builds(
        Flooded,
        broker_ids,
        steps,
        steps,
        subscriptions | st.none(),
        texts | st.none(),
    ),
    st.builds(HostState, broker_ids, steps, steps, st.lists(subscriptions, max_size=5).map(tuple)),
    st.dictionaries(broker_ids, st.tuples(steps, steps, steps), max_size=5).map(HostVersions),
    st.builds(Refresh, broker_ids, steps),
    st.builds(Mark, broker_ids, steps, st.tuples(steps, steps)),
    st.builds(
        HostChange,
        broker_ids,
        steps,
        steps,
        steps,
        st.lists(subscriptions, max_size=3).map(tuple),
        st.lists(texts, max_size=3).map(tuple),
        sets,
        sets,
    ),
    st.builds(
        HostTable,
        broker_ids,
        steps,
        steps,
        st.lists(subscriptions, max_size=5).map(tuple),
        st.booleans(),
    ),
    st.builds(
        HeardVersions,
        st.dictionaries(broker_ids, st.tuples(steps, steps), max_size=5),
        st.booleans(),
    ),
)
rounds = st.integers(1, 2**31)
ages = st.integers(-1, 2**53)
askings = st.one_of(
    st.builds(Inquiry, broker_ids, counts, rounds, sets, sets),
    st.builds(Confirmed, broker_ids, counts, sets),
    st.builds(Report, broker_ids, counts, rounds, broker_ids, sets, sets, ages, ages),
)
