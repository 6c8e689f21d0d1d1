from typing import Any

import pytest

from octopis.core.model import Notification
from octopis.errors import InvalidNotification


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
        (None, "is of type NoneType"),
        (b"x", "is of type bytes"),
        ([1], "is of type list"),
    ],
)
def test_value_that_cannot_be_carried_is_refused(value: Any, reason: str):
    message = refusal({"a": value})
    assert message.startswith("attribute 'a' ")
    assert reason in message


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
