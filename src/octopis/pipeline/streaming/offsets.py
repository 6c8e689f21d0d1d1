"""Offsets: positions of a durable subscription, as Spark keeps them in its checkpoint.

An offset is the last position that has been read. Spark compares offsets as text, so their keys
stand in one order. A range is what comes after its start, up to and with its end.
"""

from typing import Any, Literal

import msgspec

from octopis.errors import InvalidConfiguration, InvalidSubscription

POSITION_MAX = 2**62


class Offset(msgspec.Struct, frozen=True):
    """A position of a durable subscription; in another `epoch` it means something else."""

    subscription: str
    epoch: int
    position: int

    def as_json(self) -> dict[str, Any]:
        """Return what Spark keeps."""
        return msgspec.structs.asdict(self)

    def at(self, position: int) -> "Offset":
        """Return another position of the same subscription."""
        return msgspec.structs.replace(self, position=position)


def restored(found: dict[str, Any], subscription: str) -> Offset:
    """Return an offset of a checkpoint.

    Raises InvalidConfiguration where it is none, or is of another subscription.
    """
    try:
        offset = msgspec.convert(found, Offset)
    except msgspec.ValidationError as failure:
        reason = f"the checkpoint holds {found}, which is no offset of this source: {failure}"
        raise InvalidConfiguration(reason) from failure
    if offset.subscription != subscription:
        raise InvalidConfiguration(
            f"the checkpoint is of the subscription {offset.subscription!r}, not of "
            f"{subscription!r}: name that one, or give the query another checkpointLocation"
        )
    return offset


Place = Literal["earliest", "latest"] | int | Offset
"""Where a user wants to begin or to end: a position is the last one that is left out at the
start, and the last one that is taken at the end."""


class _Said(msgspec.Struct, forbid_unknown_fields=True):
    position: int
    subscription: str | None = None
    epoch: int | None = None


def parse_place(option: str, text: str) -> Place:
    """Return what startingOffsets or endingOffsets says, or raise InvalidConfiguration."""
    if text.lower() in {"earliest", "latest"}:
        return "earliest" if text.lower() == "earliest" else "latest"
    try:
        said = msgspec.json.decode(text, type=_Said)
    except msgspec.DecodeError as failure:
        raise InvalidConfiguration(
            f'{option} is earliest, latest, or an offset as in {{"position": 120}}, not {text!r}'
        ) from failure
    if not 0 <= said.position <= POSITION_MAX:
        raise InvalidConfiguration(f"{option}: there is no position {said.position:,}")
    if said.subscription is not None and said.epoch is not None:
        return Offset(said.subscription, said.epoch, said.position)
    return said.position


def located(option: str, place: Place, acked: int, end: Offset) -> Offset:
    """Return where a place is, in a subscription that is released up to `acked` and ends there.

    Raises InvalidSubscription where there is no such place any more, or yet.
    """
    if place == "earliest":
        return end.at(acked)
    if place == "latest":
        return end
    if isinstance(place, Offset):
        if (place.subscription, place.epoch) != (end.subscription, end.epoch):
            reason = f"{option} {place.as_json()} is of another subscription than {end.as_json()}"
            raise InvalidSubscription(reason, end.subscription)
        place = place.position
    if not acked <= place <= end.position:
        raise InvalidSubscription(
            f"{option} is {place:,}, and {end.subscription!r} has what comes after {acked:,}, up "
            f"to {end.position:,}; or say earliest or latest",
            end.subscription,
        )
    return end.at(place)
