"""Errors on the wire: what a broker raises arrives at the client as the same class."""

import msgspec

from octopis import errors
from octopis.errors import OctopisError, OperationFailed, restored

_Fact = str | int | float | bool | None


class Refusal(msgspec.Struct, frozen=True):
    """An error by the name of its class, its message and its fields."""

    error: str
    message: str
    fields: dict[str, _Fact] = {}

    @classmethod
    def of(cls, error: OctopisError) -> "Refusal":
        """Return what to send of an error; fields that are not plain values stay behind."""
        facts = {name: value for name, value in vars(error).items() if isinstance(value, _Fact)}
        return cls(type(error).__name__, str(error), facts)

    def as_error(self) -> OctopisError:
        """Return the error; one that this version does not know is an OperationFailed."""
        kind = getattr(errors, self.error, None)
        if not (isinstance(kind, type) and issubclass(kind, OctopisError)):
            kind = OperationFailed
        return restored(kind, (self.message,), dict(self.fields))
