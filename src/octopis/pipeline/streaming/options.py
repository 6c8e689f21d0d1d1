"""What a user may say of a source, and what is wrong with it, before anything is opened."""

import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

import msgspec

from octopis.client.address import parse_addresses
from octopis.core.filters import checked_dialect, parse_filter
from octopis.core.model.suggestion import did_you_mean
from octopis.core.wire.moving import NAME_MAX
from octopis.errors import InvalidConfiguration
from octopis.pipeline.streaming.offsets import Place, parse_place

SECRET_VARIABLE = "OCTOPIS_SECRET"  # noqa: S105 - the name of a variable
OFFSETS_MAX = 500_000
"""How many notifications one trigger takes, unless told otherwise: seconds of work."""

_BOTH = (
    "address",
    "path",
    "filter",
    "dialect",
    "subscription",
    "secretFile",
    "credentialsFile",
    "mode",
)
_RANGE = ("startingOffsets", "failOnDataLoss", "minPartitions")
_RANGE_BYTES = (*_RANGE, "maxBytesPerTrigger")
STREAM_OPTIONS = (*_BOTH, *_RANGE, "maxOffsetsPerTrigger", "maxBytesPerTrigger")
BATCH_OPTIONS = (*_BOTH, *_RANGE, "endingOffsets")


class Mode(Enum):
    """What becomes of a value that does not fit its column."""

    PERMISSIVE = "PERMISSIVE"
    FAILFAST = "FAILFAST"


class Options(msgspec.Struct, frozen=True):
    """The options of one source, checked. `filter` is in its plain form, or None."""

    address: str
    subscription: str
    filter: str | None
    mode: Mode = Mode.PERMISSIVE
    secret_file: str | None = None
    credentials_file: str | None = None
    fail_on_data_loss: bool = True
    min_partitions: int = 1
    starting: Place = "earliest"
    ending: Place = "latest"
    max_offsets: int = OFFSETS_MAX
    max_bytes: int | None = None

    def secret(self) -> str:
        """Return the secret of owned subscriptions, from where this process is; "" for none."""
        return read_secret(self.secret_file)


def read_secret(file: str | None) -> str:
    """Return what a file, or else the variable, says; "" where there is neither."""
    if file is None:
        return os.environ.get(SECRET_VARIABLE, "")
    try:
        found = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as failure:
        reason = f"cannot read secretFile, which driver and executors need: {failure}"
        raise InvalidConfiguration(reason) from failure
    if not found:
        raise InvalidConfiguration(f"secretFile {file} is empty")
    return found


def stream_options(given: Mapping[str, str]) -> Options:
    """Return the options of a stream, or raise InvalidConfiguration or InvalidFilter."""
    said = known_options(
        given, STREAM_OPTIONS, BATCH_OPTIONS, "spark.read, not of spark.readStream"
    )
    options = _options(said)
    if not options.subscription and options.filter is None:
        raise InvalidConfiguration('say what to read: .option("filter", "price > 50")')
    for name in () if options.subscription else _RANGE_BYTES:
        if name in said:
            raise InvalidConfiguration(
                f'{name} is about what a durable subscription keeps: with subscription "" nothing '
                "is kept, so leave it out, or name a subscription"
            )
    return options


def batch_options(given: Mapping[str, str]) -> Options:
    """Return the options of a batch, or raise InvalidConfiguration or InvalidFilter."""
    said = known_options(
        given, BATCH_OPTIONS, STREAM_OPTIONS, "spark.readStream, not of spark.read"
    )
    options = _options(said)
    if not options.subscription:
        raise InvalidConfiguration(
            "spark.read reads what a durable subscription has: name one by "
            '.option("subscription", "a name")'
        )
    if options.starting == "latest" or options.ending == "earliest":
        raise InvalidConfiguration("a batch has no rows from the latest, or to the earliest")
    return options


def known_options(
    given: Mapping[str, str], names: tuple[str, ...], others: tuple[str, ...], whose: str
) -> dict[str, str]:
    """Return what was said by the options' names: Spark hands them over in lower case."""
    spelled = {name.lower(): name for name in names}
    elsewhere = {name.lower(): name for name in others}
    said = {}
    for key, value in given.items():
        if key.lower() == "secret":
            raise InvalidConfiguration(
                "Spark shows and logs options, so a secret is none: say secretFile, or set "
                f"{SECRET_VARIABLE} for driver and executors"
            )
        if key.lower() not in spelled:
            if key.lower() in elsewhere:
                raise InvalidConfiguration(f"{elsewhere[key.lower()]} is an option of {whose}")
            hint = did_you_mean(key, names) or f"; there are {', '.join(names)}"
            raise InvalidConfiguration(f'format("octopis") has no option {key!r}{hint}')
        said[spelled[key.lower()]] = value
    return said


def _options(said: dict[str, str]) -> Options:
    if "address" in said and "path" in said:
        raise InvalidConfiguration("say the address once: as an option, or in .load(...)")
    address = said.get("address") or said.get("path")
    if not address:
        raise InvalidConfiguration('say where: .option("address", "octopis://127.0.0.1:7400")')
    parse_addresses(address)
    condition = said.get("filter")
    dialect = checked_dialect(said.get("dialect", "sql"))
    return Options(
        address=address,
        subscription=_subscription(said),
        filter=None if condition is None else str(parse_filter(condition, dialect)),
        mode=mode_of(said.get("mode", "PERMISSIVE")),
        secret_file=said.get("secretFile"),
        credentials_file=said.get("credentialsFile"),
        fail_on_data_loss=truth_of(said, "failOnDataLoss", default=True),
        min_partitions=_count(said, "minPartitions") or 1,
        starting=parse_place("startingOffsets", said.get("startingOffsets", "earliest")),
        ending=parse_place("endingOffsets", said.get("endingOffsets", "latest")),
        max_offsets=_count(said, "maxOffsetsPerTrigger") or OFFSETS_MAX,
        max_bytes=_count(said, "maxBytesPerTrigger"),
    )


def _subscription(said: dict[str, str]) -> str:
    name = said.get("subscription")
    if name is None:
        raise InvalidConfiguration(
            'say which durable subscription: .option("subscription", "a name"); its positions are '
            'what a restarted query goes on from. "" reads without one, at most once'
        )
    if len(name) > NAME_MAX or not name.isprintable():
        raise InvalidConfiguration(
            f"the name of a subscription is printable, at most {NAME_MAX} characters: {name[:40]!r}"
        )
    return name


def mode_of(text: str) -> Mode:
    """Return the mode of this name, or raise InvalidConfiguration."""
    try:
        return Mode(text.upper())
    except ValueError:
        raise InvalidConfiguration(f"mode is PERMISSIVE or FAILFAST, not {text!r}") from None


def truth_of(said: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return what was said of an option that is true or false, or raise InvalidConfiguration."""
    text = said.get(name, str(default)).lower()
    if text not in {"true", "false"}:
        raise InvalidConfiguration(f"{name} is true or false, not {said[name]!r}")
    return text == "true"


def _count(said: dict[str, str], name: str) -> int | None:
    text = said.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise InvalidConfiguration(f"{name} is a whole number from 1, not {text!r}")
    return int(text)
