from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any

import numpy as np
import pytest

from octopis.core.model import Notification
from octopis.errors import InvalidNotification


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Plain(Enum):
    RED = "red"


def refusal(attributes: Any, payload: Any = b"") -> str:
    with pytest.raises(InvalidNotification) as caught:
        Notification.checked(attributes, payload)
    return str(caught.value)


def test_attributes_of_all_types_are_taken():
    attributes = {"symbol": "ABC", "open": 12.5, "volume": 100, "halted": False}
    notification = Notification.checked(attributes, b"payload")
    assert notification.attributes == attributes
    assert notification.payload == b"payload"


def test_notification_has_its_own_copy_of_the_attributes():
    attributes: dict[str, str | int | float | bool] = {"a": 1}
    notification = Notification.checked(attributes)
    attributes["a"] = 2
    assert notification.attributes == {"a": 1}


@pytest.mark.parametrize(
    "value", [-(2**63), 2**63 - 1, "x" * 65_535, 0.0, "", "\N{GRINNING FACE}", True]
)
def test_values_at_the_bounds_are_taken(value: Any):
    assert Notification.checked({"a": value}).attributes == {"a": value}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (2**63, "does not fit in 64 bits"),
        (-(2**63) - 1, "does not fit in 64 bits"),
        (float("nan"), "is nan, which compares with nothing"),
        (float("inf"), "is inf, which compares with nothing"),
        ("x" * 65_536, "has 65536 characters, more than 65535"),
        ("\ud800", "lone surrogate"),
        (None, "is of type NoneType; leave it out"),
        (b"x", "is of type bytes; put it into the payload"),
        ([1], "is of type list; send each part as an attribute, or all as payload"),
        ({"b": 1}, "is of type dict; send each part as an attribute"),
        (datetime(2008, 3, 1, tzinfo=UTC), "is of type datetime; send its .isoformat()"),
        (np.datetime64("2008-03-01"), "is of type datetime64"),
        (Decimal("1.5"), "is of type Decimal; send float(...) of it"),
        (Plain.RED, "is of type Plain; send its .value"),
        (np.array([1, 2]), "is of type ndarray; send each part"),
        (np.float32("nan"), "is nan, which compares with nothing"),
        (np.uint64(2**63), "does not fit in 64 bits"),
        (object(), "is of type object; use text, integer, float or boolean"),
    ],
)
def test_value_that_cannot_be_carried_is_refused(value: Any, reason: str):
    message = refusal({"a": value})
    assert message.startswith("attribute 'a' ")
    assert reason in message


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(5), 5),
        (np.uint8(5), 5),
        (np.float64(1.5), 1.5),
        (np.float32(1.5), 1.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array(5), 5),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
    ],
)
def test_what_stands_for_a_plain_value_becomes_it(value: Any, plain: object):
    found = Notification.checked({"before": 1, "a": value, "after": 2}).attributes
    assert found == {"before": 1, "a": plain, "after": 2}
    assert type(found["a"]) is type(plain)


@pytest.mark.parametrize("attributes", [[("a", 1)], "a", None, 5])
def test_attributes_that_are_no_mapping_are_refused(attributes: Any):
    assert refusal(attributes).startswith("attributes are a mapping of names to values, not ")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "1 to 255 characters, not 0"),
        ("n" * 256, "1 to 255 characters, not 256: 'nnnnnnnnnnnnnnnnnnnn'..."),
        (7, "attribute names are text, not int: 7"),
        ("\udfff", "lone surrogate"),
    ],
)
def test_name_that_cannot_be_carried_is_refused(name: Any, reason: str):
    assert reason in refusal({name: 1})


def test_too_many_attributes_are_refused():
    assert Notification.checked({f"a{n}": n for n in range(64)})
    assert "at most 64 attributes, not 65" in refusal({f"a{n}": n for n in range(65)})


def test_payload_that_is_no_bytes_is_refused():
    assert refusal({"a": 1}, "text") == "the payload must be bytes, not str"
