"""How spans are called, what is traced, and what is told of queues that drop."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.broker.settings import LinkPolicy
from octopis.broker.telemetry.core import TracedCore
from octopis.broker.telemetry.identity import Identity, identity_of
from octopis.broker.telemetry.options import SpanOptions
from octopis.broker.telemetry.queues import ClientSpans, LinkSpans
from octopis.broker.telemetry.visits import SEEN_MAX, Finished, Kind, Traced, Tracer
from octopis.client.traceparent import TraceParent, parse_traceparent
from octopis.core.filters import parse_filter
from octopis.core.model.notification import INTEGER_MAX
from octopis.core.routing import Algorithm, Broker, NotificationMessage, Reason
from octopis.core.wire.published import Published, decode_one, encode_published
from octopis.core.wire.targeted import _passing
from octopis.errors import InvalidConfiguration
from octopis.overlay.settings import parse_overlay
from support.collector import ROOT, TRACE, TRACEPARENT
from support.live import line, overlay
from support.overlay_command import SMALL

SCOT = line(2)
HERE, THERE = SCOT.brokers


def published(
    traceparent: object = TRACEPARENT, payload: bytes = b"", sequence: int = 7, **others: Any
) -> Published:
    attributes = {**others, "traceparent": traceparent}
    return decode_one(encode_published(attributes, payload, "pub", sequence, 0))


class Ended(list[Finished]):
    """A tracer of B(a, 0) that exports into this list."""

    def __init__(self) -> None:
        self.tracer = Tracer(HERE, Algorithm.TNR, self.append)

    def begin(self, kind: Kind = Kind.PUBLISH, **about: Any) -> Traced:
        found = self.tracer.traced(published(**about), kind)
        assert found is not None
        return found


# What is traced


def test_traceparent_is_read():
    assert parse_traceparent(TRACEPARENT) == TraceParent(int(TRACE, 16), int(ROOT, 16), True)
    unsampled = parse_traceparent(TRACEPARENT[:-2] + "fe")
    assert unsampled is not None
    assert not unsampled.is_sampled


@given(st.one_of(st.text(), st.integers(), st.from_regex(r"\A00-[0-9a-f]+-[0-9a-f]+-01\Z")))
def test_anything_else_is_no_traceparent_and_no_error(text: object):
    found = parse_traceparent(text)
    if found is not None:
        assert text == f"00-{found.trace_id:032x}-{found.span_id:016x}-01"


@pytest.mark.parametrize("payload", [b"", b"x" * 10_000])
@pytest.mark.parametrize("others", [{}, {"n": 1}, {"text": "x" * 5_000}])
def test_broker_on_the_way_sees_what_the_host_sees(payload: bytes, others: dict[str, Any]):
    here = published(payload=payload, **others)
    passing = _passing(here.encoded)
    assert passing.attributes == {}
    assert (
        identity_of(here)
        == identity_of(passing)
        == Identity(TraceParent(int(TRACE, 16), int(ROOT, 16), True), "pub", 7)
    )


@pytest.mark.parametrize("payload", [b"traceparent\xd97" + TRACEPARENT.encode(), b"y" * 9_000])
def test_payload_and_other_attributes_are_not_taken_for_it(payload: bytes):
    attributes = {"n": 1, "text": f"traceparent{TRACEPARENT}"}
    plain = decode_one(encode_published(attributes, payload, "pub", 1, 0))
    assert identity_of(plain) is None
    assert identity_of(_passing(plain.encoded)) is None


# How spans are called


def test_span_of_a_broker_is_called_the_same_by_all_who_know_the_notification():
    identity = identity_of(published())
    assert identity is not None
    assert identity.span_id("b,2") == identity_of(_passing(published().encoded)).span_id("b,2")
    # Brokers of another version must call it so, too: or a tree falls apart while one is upgraded.
    assert f"{identity.span_id('b,2'):016x}" == "1f8c04d86282f285"


@given(
    st.lists(
        st.tuples(st.text(max_size=3), st.integers(-5, 5), st.sampled_from(["a,0", "a,1", "b,0"])),
        unique=True,
        min_size=2,
    )
)
def test_different_notifications_and_brokers_have_different_spans(
    facts: list[tuple[str, int, str]],
):
    parent = TraceParent(1, 2, True)
    ids = {Identity(parent, name, number).span_id(broker) for name, number, broker in facts}
    assert len(ids) == len(facts)
    assert all(0 < each < 1 << 64 for each in ids)


def test_first_visit_has_the_known_id_and_later_ones_hang_on_the_neighbour_all_the_same():
    ended = Ended()
    message = NotificationMessage(published(), targets=2)
    for _ in range(3):
        found = ended.tracer.traced(published(), Kind.HOP, message, THERE.short)
        assert found is not None
        assert found.visit is not None
        found.visit.routed()
    identity = identity_of(published())
    assert identity is not None
    assert ended[0].span_id == identity.span_id(HERE.short)
    assert len({each.span_id for each in ended}) == 3
    assert {each.parent_id for each in ended} == {identity.span_id(THERE.short)}


def test_what_is_remembered_is_bounded():
    ended = Ended()
    for sequence in range(SEEN_MAX + 10):
        ended.begin(sequence=sequence).visit.end()
    assert len(ended.tracer._seen) == SEEN_MAX
    assert not ended.tracer.open


def test_span_holds_the_highest_sequence():
    ended = Ended()
    ended.begin(sequence=INTEGER_MAX).visit.end()
    assert ended[0].attributes["octopis.sequence"] == INTEGER_MAX


# Queues


def copies(ended: Ended, *traced: bool) -> list[Any]:
    """Return messages, some of which are traced, each with a visit that is routed."""
    found = []
    for number, is_traced in enumerate(traced):
        notification = ended.begin(sequence=number) if is_traced else published("none")
        if isinstance(notification, Traced) and notification.visit is not None:
            notification.visit.will_send()
            notification.visit.routed()
        found.append(NotificationMessage(notification, targets=1))
    return found


def fates(ended: Ended) -> list[tuple[int, str]]:
    return [(each.attributes["octopis.sequence"], each.events[0].name) for each in ended]


@pytest.mark.parametrize(
    ("policy", "dropped"),
    [(LinkPolicy.DROP_NEWEST, [(3, "dropped")]), (LinkPolicy.DROP_OLDEST, [(1, "dropped")])],
)
def test_dropped_copies_are_told_at_the_end_that_the_policy_drops(
    policy: LinkPolicy, dropped: list[tuple[int, str]]
):
    ended = Ended()
    log = LinkSpans(THERE, ended.tracer, policy, None)
    waiting = copies(ended, False, True, False, True)
    log.enqueued(waiting, [Reason.TARGET] * 4, 1)
    log.left(1, 2)
    log.lost(2 if policy is LinkPolicy.DROP_OLDEST else 1, 3)
    assert fates(ended) == dropped
    log.left(4 - 1 - (2 if policy is LinkPolicy.DROP_OLDEST else 1), 4)
    assert [fate for _, fate in fates(ended)] == ["dropped", "sent"]
    assert not ended.tracer.open


def test_link_that_goes_down_cuts_what_waits_and_nothing_that_comes_after():
    ended = Ended()
    log = LinkSpans(THERE, ended.tracer, LinkPolicy.DROP_NEWEST, None)
    log.enqueued(copies(ended, True, True), [Reason.TARGET] * 2, 1)
    log.left(1, 2)
    log.went_down(3)
    log.enqueued(copies(ended, False, True), [Reason.AROUND_FAULT] * 2, 4)
    log.left(2, 5)
    assert fates(ended) == [(0, "sent"), (1, "cut"), (1, "sent")]
    assert ended[-1].attributes["octopis.around"] == "fault"


def test_deliveries_that_come_to_nothing_say_why():
    ended = Ended()
    log = ClientSpans("far", ended.tracer, None)
    for sequence in range(4):
        log.queued(published("none"), ["s"])
        log.queued(ended.begin(sequence=sequence), ["s", "t"])
    log.left(2)
    log.dropped(3)
    log.ended()
    told = [(each.attributes["octopis.sequence"], each.failure) for each in ended]
    assert told == [
        (0, ""),
        (1, "the client is too slow: dropped"),
        (2, "the client has left"),
        (3, "the client has left"),
    ]
    assert {each.attributes["octopis.subscriptions"] for each in ended} == {2}


# A broker that traces, and one that does not


def test_bytes_on_the_way_are_those_that_came():
    ended = Ended()
    core = TracedCore(ended.tracer, HERE, SCOT, Algorithm.BID)
    plain = Broker(HERE, SCOT, Algorithm.BID)
    came = published()
    for each in (core, plain):
        each.client_subscribes("me", "s", parse_filter("TRUE"))
    found = [
        [effect for part in each.publishes_in_parts([came]) for effect in part]
        for each in (core, plain)
    ]
    delivered, as_ever = ((effects[0].client, effects[0].notification) for effects in found)
    assert delivered[0] == as_ever[0]
    assert delivered[1].encoded is as_ever[1].encoded
    assert isinstance(delivered[1], Traced)
    assert type(as_ever[1]) is Published
    assert [each.kind for each in ended] == [Kind.PUBLISH]


def test_visit_ends_when_the_driver_stops_half_way():
    ended = Ended()
    core = TracedCore(ended.tracer, HERE, SCOT, Algorithm.TNR)
    parts = core.publishes_in_parts([published()])
    next(parts)
    parts.close()
    assert len(ended) == 1
    assert not ended.tracer.open


def test_untraced_messages_go_to_the_core_as_they_are():
    ended = Ended()
    core = TracedCore(ended.tracer, HERE, SCOT, Algorithm.TNR)
    batch = [published("none"), published(17)]
    found, visits = core._published(batch)
    assert found is batch
    assert visits == []


# Settings


@pytest.mark.parametrize(
    "endpoint",
    [
        "4318",
        "127.0.0.1:4318",
        "ftp://127.0.0.1",
        "http://",
        "http://[::1",
        "http://h:x",
        "http://h?a",
    ],
)
def test_endpoint_that_is_no_address_is_refused(endpoint: str):
    with pytest.raises(
        InvalidConfiguration, match=r"tracing\.endpoint is the address of a collector"
    ):
        SpanOptions(endpoint)


def test_password_in_the_endpoint_is_refused_and_not_repeated():
    with pytest.raises(InvalidConfiguration, match="OTEL_EXPORTER_OTLP_HEADERS") as refused:
        SpanOptions("https://me:hush@collector.example")
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://c.example/otlp", "https://c.example/otlp/v1/traces"),
        ("https://c.example/v1/traces", "https://c.example/v1/traces"),
    ],
)
def test_spans_are_posted_where_the_protocol_says(endpoint: str, url: str):
    assert SpanOptions(endpoint).url == url


def test_spans_go_over_plain_http_to_this_machine_alone_unless_said_otherwise():
    elsewhere = SpanOptions("http://collector.example:4318")
    with pytest.raises(InvalidConfiguration, match="where other machines can read them"):
        overlay(SCOT, tracing=elsewhere)
    assert overlay(SCOT, tracing=elsewhere, insecure=True).tracing.is_on
    assert overlay(SCOT, tracing=SpanOptions("https://collector.example")).tracing.is_on
    assert not overlay(SCOT).tracing.is_on


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("queue", 0),
        ("interval_s", 0),
        ("timeout_s", 61),
        ("service_name", '""'),
        ("endpoint", '"x"'),
    ],
)
def test_bounds_of_settings_are_said_with_their_place(key: str, value: object):
    with pytest.raises(InvalidConfiguration, match=key):
        parse_overlay(f"{SMALL}[tracing]\n{key} = {value}\n", "o.toml")
