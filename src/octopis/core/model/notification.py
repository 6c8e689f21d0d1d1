"""What publishers send: named attributes and an opaque payload."""

import math
from collections.abc import Collection, Mapping
from enum import Enum
from numbers import Number
from types import NoneType
from typing import NoReturn

import msgspec

from octopis.errors import InvalidNotification

Value = str | int | float | bool

NAME_LENGTH_MAX = 255
TEXT_LENGTH_MAX = 65_535
ATTRIBUTES_MAX = 64
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1


UNREADABLE: dict[str, Value] = {}
"""The attributes of a notification that made no sense where it arrived: nobody gets it."""


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
        1 to 255 characters, and there are at most 64 attributes. What stands for a plain value
        (see `plain_value`) becomes it.
        """
        if type(attributes) is not dict and not isinstance(attributes, Mapping):
            raise InvalidNotification(
                f"attributes are a mapping of names to values, not {type(attributes).__name__}"
            )
        if len(attributes) > ATTRIBUTES_MAX:
            raise InvalidNotification(
                f"a notification has at most {ATTRIBUTES_MAX} attributes, not {len(attributes)}"
            )
        own = dict(attributes)
        for name, value in own.items():
            _check_name(name)
            _check_value(own, name, value)
        if not isinstance(payload, bytes):
            raise InvalidNotification(f"the payload must be bytes, not {type(payload).__name__}")
        return cls(own, payload)


def plain_value(value: object) -> object:
    """Return the text, number or boolean that `value` stands for, or `value` where it is none.

    Values of subclasses (enumerations of texts or numbers) stand for a plain value, and so do the
    scalars of numpy and its like, which are known by having no dimensions.
    """
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # the text itself, also of an enumeration's
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value


def plain_attributes(attributes: Mapping[str, object]) -> dict[str, Value]:
    """Return `attributes` with plain values, without those that are None, which are absent."""
    return {name: _plain(name, value) for name, value in attributes.items() if value is not None}


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise InvalidNotification(f"attribute names are text, not {type(name).__name__}: {name!r}")
    if not 1 <= len(name) <= NAME_LENGTH_MAX:
        raise InvalidNotification(
            f"attribute names have 1 to {NAME_LENGTH_MAX} characters, not {len(name)}: "
            f"{name[:20]!r}{'...' if len(name) > 20 else ''}"
        )
    _check_encodable(name, name)


def _check_value(own: dict[str, Value], name: str, value: object) -> None:
    """Check one value; where it only stands for a plain one, put that one into `own`."""
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
        own[name] = _plain(name, value)
        _check_value(own, name, own[name])


_INSTEAD: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (NoneType, "leave it out"),
    ((bytes, bytearray, memoryview), "put it into the payload, or decode it to text"),
    (Enum, "send its .value"),
    (Number, "send float(...) of it"),
    (Collection, "send each part as an attribute, or all as payload"),
    (object, "use text, integer, float or boolean"),
)
"""What to send instead of something that is no value; the first that it is an instance of."""


def _plain(name: str, value: object) -> Value:
    plain = plain_value(value)
    if type(plain) not in (str, int, float, bool):
        instead = next(words for kinds, words in _INSTEAD if isinstance(value, kinds))
        if hasattr(value, "isoformat"):  # a date or a time
            instead = "send its .isoformat()"
        _refuse(name, f"is of type {type(value).__name__}; {instead}")
    return plain  # type: ignore[return-value]  # of these types, as just tested


def _check_encodable(name: str, text: str) -> None:
    # ASCII is known at once; only the rest can hide a lone surrogate, which has no UTF-8 form.
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        _refuse(name, "has a lone surrogate, which is not Unicode text")


def _refuse(name: str, reason: str) -> NoReturn:
    raise InvalidNotification(f"attribute {name!r} {reason}")
