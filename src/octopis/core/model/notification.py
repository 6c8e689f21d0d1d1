"""What publishers send: named attributes and an opaque payload."""

import math
from collections.abc import Mapping
from typing import NoReturn

import msgspec

from octopis.errors import InvalidNotification

Value = str | int | float | bool

NAME_LENGTH_MAX = 255
TEXT_LENGTH_MAX = 65_535
ATTRIBUTES_MAX = 64
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1


class Notification(msgspec.Struct, frozen=True, gc=False):
    """An immutable notification. An attribute that is not there is absent; there is no null.

    `Notification(...)` itself checks nothing, for brokers that pass on what another has
    checked; everything that comes from a user goes through `Notification.checked`.
    """

    attributes: dict[str, Value]
    payload: bytes = b""

    @classmethod
    def checked(cls, attributes: Mapping[str, Value], payload: bytes = b"") -> "Notification":
        """Return the notification with its own copy of `attributes`, or raise InvalidNotification.

        Text is at most 65,535 characters, integers fit 64 bits, floats are finite, names are
        1 to 255 characters, and there are at most 64 attributes.
        """
        if len(attributes) > ATTRIBUTES_MAX:
            raise InvalidNotification(
                f"a notification has at most {ATTRIBUTES_MAX} attributes, not {len(attributes)}"
            )
        for name, value in attributes.items():
            _check_name(name)
            _check_value(name, value)
        if not isinstance(payload, bytes):
            raise InvalidNotification(f"the payload must be bytes, not {type(payload).__name__}")
        return cls(dict(attributes), payload)


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise InvalidNotification(f"attribute names are text, not {type(name).__name__}: {name!r}")
    if not 1 <= len(name) <= NAME_LENGTH_MAX:
        raise InvalidNotification(
            f"attribute names have 1 to {NAME_LENGTH_MAX} characters, not {len(name)}: "
            f"{name[:20]!r}{'...' if len(name) > 20 else ''}"
        )
    _check_encodable(name, name)


def _check_value(name: str, value: object) -> None:
    kind = type(value)
    if kind is float:
        if not math.isfinite(value):  # type: ignore[arg-type]  # a float, as just tested
            _refuse(name, f"is {value}, which compares with nothing: leave it out")
    elif kind is int:
        if not INTEGER_MIN <= value <= INTEGER_MAX:  # type: ignore[operator]
            _refuse(name, "does not fit in 64 bits: send it as text or float")
    elif kind is str:
        if len(value) > TEXT_LENGTH_MAX:  # type: ignore[arg-type]
            _refuse(
                name,
                f"has {len(value)} characters, "  # type: ignore[arg-type]
                f"more than {TEXT_LENGTH_MAX}: put it into the payload",
            )
        _check_encodable(name, value)  # type: ignore[arg-type]
    elif kind is not bool:
        _refuse(name, f"is of type {kind.__name__}; use text, integer, float or boolean")


def _check_encodable(name: str, text: str) -> None:
    # ASCII is known at once; only the rest can hide a lone surrogate, which has no UTF-8 form.
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        _refuse(name, "has a lone surrogate, which is not Unicode text")


def _refuse(name: str, reason: str) -> NoReturn:
    raise InvalidNotification(f"attribute {name!r} {reason}")
