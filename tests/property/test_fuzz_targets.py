"""The short form of `octopis bench fuzz`: what strangers send breaks no law.

Seeds, what was found once, and inputs made of these without a guide, always the same. The laws can
fail: what breaks them is found.
"""

import json
import random
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.benchmarks.fuzz import decoders, seeds, texts
from octopis.benchmarks.fuzz.laws import Check, fault_of, hold, same_again, soon
from octopis.benchmarks.fuzz.run import growth_mb
from octopis.benchmarks.fuzz.targets import FILTERS, TARGETS, WIRE
from octopis.core.wire.frames import FrameDecoder, FrameKind
from octopis.core.wire.inquiries import encode_asking
from octopis.core.wire.link import encode_message, frames_of
from octopis.errors import ProtocolError
from support.conditions import CONDITION, made
from support.fuzz_found import FOUND
from support.wire_strategies import askings, messages

MUTATED = 300


@pytest.fixture(scope="module")
def checks() -> Iterator[dict[str, Check]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(each.make()) for name, each in TARGETS.items()}


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_what_was_found_once_break_no_law(checks: dict[str, Check], name: str):
    for data in (*TARGETS[name].seeds(), *FOUND.get(name, ()), b"", b"\0"):
        assert fault_of(checks[name], data, TARGETS[name].limit_s) is None, data


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_made_of_seeds_break_no_law(checks: dict[str, Check], name: str):
    chosen = random.Random(name)  # noqa: S311 - repeatable on purpose
    target = TARGETS[name]
    before = [*target.seeds(), *FOUND.get(name, ())]
    for _ in range(MUTATED):
        data = target.mutate(chosen.choice(before), target.size_max, chosen.randrange(2**31))
        assert len(data) <= target.size_max
        assert fault_of(checks[name], data, TARGETS[name].limit_s) is None, data


@given(messages | askings, st.integers(0, 2**31))
def test_what_neighbours_say_and_what_is_made_of_it_breaks_no_law(said: object, seed: int):
    target = TARGETS["link"]
    check = decoders.MESSAGES["link"][0]
    is_asking = type(said).__name__ in ("Inquiry", "Confirmed", "Report")
    frames = [encode_asking(said)] if is_asking else frames_of([encode_message(said)])  # type: ignore[arg-type]
    for frame in frames:
        assert fault_of(check, frame[4:]) is None
        assert fault_of(check, target.mutate(frame[4:], target.size_max, seed)) is None


@given(CONDITION)
def test_drawn_filters_break_no_law(drawn: object):
    found = made(drawn)
    assert fault_of(texts.check_sql, str(found).encode(), TARGETS["sql"].limit_s) is None


def test_everything_on_the_wire_and_in_filters_is_fuzzed():
    decoder = FrameDecoder()
    kinds = {frame.kind for each in seeds.frames() for frame in decoder.receive_data(each)}
    assert kinds == set(FrameKind)
    assert {each.group for each in TARGETS.values()} >= {WIRE, FILTERS}
    assert set(FOUND) <= set(TARGETS)


def test_seeds_are_real_messages():
    for name, (_, found) in decoders.MESSAGES.items():
        for data in found():
            kind, body = data[0], data[1:]
            if kind != FrameKind.PUBLISH:
                msgspec.msgpack.decode(body)
            assert kind in set(FrameKind), name


# The laws can fail


def test_an_error_that_is_not_documented_is_a_fault():
    def check(data: bytes) -> None:
        try:
            json.loads(data)["key"]
        except ProtocolError:
            return

    assert "KeyError" in str(fault_of(check, b"{}"))
    assert "RecursionError" in str(fault_of(check, b"[" * 100_000))
    assert fault_of(check, b'{"key": 1}') is None


def test_what_takes_too_long_is_a_fault_and_what_waits_for_others_is_not():
    def works(_: bytes) -> None:
        end = time.process_time() + 0.012
        while time.process_time() < end:
            pass

    assert "it takes" in str(fault_of(works, b""))
    assert fault_of(lambda _: time.sleep(0.02), b"") is None


def test_a_step_of_a_check_that_takes_too_long_is_a_fault_by_itself():
    def works() -> int:
        end = time.process_time() + 0.012
        while time.process_time() < end:
            pass
        return 7

    def check(_: bytes) -> None:
        soon(works, "reading it")

    assert "reading it" in str(fault_of(check, b"", limit_s=1))
    assert soon(lambda: 7, "nothing") == 7


def test_what_comes_back_as_something_else_is_a_fault():
    def check(data: bytes) -> None:
        same_again(data, bytes.upper, bytes.lower)

    assert fault_of(check, b"a") is None
    assert "something else" in str(
        fault_of(lambda _: same_again(1.5, lambda x: b"%d" % x, lambda _: 2.5), b"")
    )
    assert "no law" in str(fault_of(lambda _: hold(False, "no law"), b""))


def test_memory_that_grows_is_seen():
    kept = []

    def keeps(data: bytes) -> None:
        kept.append(struct.pack("200000x") + data)

    assert growth_mb(keeps, [b"a"] * 100, cases=200) > 8
    assert growth_mb(lambda _: None, [b"a"] * 100, cases=200) < 8
