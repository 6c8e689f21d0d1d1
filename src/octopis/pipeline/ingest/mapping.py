"""Which columns become which attributes, and what a row must keep to: a mapping, written in TOML.

A mapping names attributes one by one, takes all columns as they are (`rest`), or both. That of
stock quotes ships with the package (quotes.toml) and is one like any other.
"""

from collections.abc import Iterable
from collections.abc import Mapping as Table
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from octopis.core.model.notification import ATTRIBUTES_MAX, NAME_LENGTH_MAX, TEXT_LENGTH_MAX
from octopis.core.model.suggestion import did_you_mean
from octopis.core.toml import decode
from octopis.errors import InvalidConfiguration
from octopis.files import check_local

QUOTES = "quotes"
EVERYTHING = "*"
OURS = "_row_"
"""How columns begin that stand beside the attributes on the way; no attribute does."""

Times = Literal["iso", "ns"]


class Kind(Enum):
    """What an attribute's values are. Dates are published as text, times as text or integers."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"


class Attribute(Struct, frozen=True, kw_only=True):
    """Where an attribute comes from, and what its values must keep to.

    It is read from a column (its own name, unless `column` says another, or several of which the
    first that is there counts), derived by an expression of Spark SQL, or the change of another
    against the row before.
    """

    column: str | tuple[str, ...] = ()
    type: Kind | None = None
    required: bool = False
    min: float | None = None
    max: float | None = None
    max_length: Annotated[int, Meta(ge=1, le=TEXT_LENGTH_MAX)] = TEXT_LENGTH_MAX
    from_file: bool = False
    derive: str | None = None
    change_of: str | None = None
    digits: Annotated[int, Meta(ge=0, le=12)] = 6
    subscribe_by: Literal["range", "values"] | None = None

    @property
    def is_read(self) -> bool:
        """Whether it comes from a column."""
        return self.derive is None and self.change_of is None


class Mapping(Struct, frozen=True, kw_only=True):
    """The tables of a mapping's file."""

    name: str = "rows"
    times: Times = "iso"
    key: tuple[str, ...] = ()
    whole: bool = False
    rest: bool = False
    leave_out: tuple[str, ...] = ()
    attributes: dict[str, Attribute] = {}
    checks: dict[str, str] = {}

    def check(self, where: str) -> None:
        """Raise InvalidConfiguration where its parts do not fit each other."""
        if not self.name.isidentifier():
            raise InvalidConfiguration(f"{where}: name must be a plain word, not {self.name!r}")
        if not self.attributes and not self.rest:
            raise InvalidConfiguration(f"{where} names no attribute: add one, or rest = true")
        if self.leave_out and not self.rest:
            raise InvalidConfiguration(f"{where}: leave_out goes with rest = true")
        check_attribute_count(len(self.attributes), where)
        check_names_apart(self.attributes, where)
        for name, attribute in self.attributes.items():
            _check_attribute(name, attribute, self, f"{where}: attributes.{name}")
        for name in self.key:
            if name not in self.attributes:
                hint = did_you_mean(name, self.attributes)
                raise InvalidConfiguration(f"{where}: key names {name!r}, no attribute{hint}")
            if not self.attributes[name].is_read:
                raise InvalidConfiguration(f"{where}: key names {name!r}, which is derived")

    @property
    def is_typed(self) -> bool:
        """Whether it says the types of all columns itself, so that none needs to be looked for."""
        read = [each for each in self.attributes.values() if each.is_read]
        return not self.rest and all(each.type for each in read)


def check_attribute_count(count: int, where: str) -> None:
    """Raise InvalidConfiguration for more attributes than a notification can have."""
    if count > ATTRIBUTES_MAX:
        raise InvalidConfiguration(
            f"{where} has {count} attributes, and a notification {ATTRIBUTES_MAX} at most: "
            "name those that subscriptions ask for"
        )


def check_names_apart(names: Iterable[str], where: str) -> None:
    """Raise InvalidConfiguration for names that Spark, which writes the rows, takes for one."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InvalidConfiguration(
                f"{where}: the attributes {other!r} and {name!r} differ by case alone, and Spark "
                "cannot tell them apart: give one another name, or leave it out"
            )


def _check_attribute(name: str, attribute: Attribute, mapping: Mapping, where: str) -> None:
    if not 1 <= len(name) <= NAME_LENGTH_MAX:
        raise InvalidConfiguration(f"{where}: a name has 1 to {NAME_LENGTH_MAX} characters")
    if name.startswith(OURS):
        raise InvalidConfiguration(f"{where}: names that begin with {OURS} are ours")
    sources = [bool(attribute.column), attribute.derive is not None, bool(attribute.change_of)]
    if sum(sources) > 1 or (attribute.from_file and not attribute.is_read):
        raise InvalidConfiguration(f"{where}: give one of column, derive and change_of")
    if (attribute.min, attribute.max) != (None, None) and attribute.type not in _NUMERIC:
        raise InvalidConfiguration(f"{where}: min and max go with the type number or integer")
    if attribute.change_of is None:
        return
    if attribute.change_of not in mapping.attributes:
        hint = did_you_mean(attribute.change_of, mapping.attributes)
        raise InvalidConfiguration(
            f"{where}: change_of names {attribute.change_of!r}, no attribute{hint}"
        )
    of = mapping.attributes[attribute.change_of]
    if not of.is_read or of.type not in _NUMERIC:
        raise InvalidConfiguration(f"{where}: change_of names no column of numbers")
    if len(mapping.key) < 2:
        raise InvalidConfiguration(
            f"{where}: change_of needs a key of two: whose rows follow each other, and by what"
        )


_NUMERIC = (Kind.NUMBER, Kind.INTEGER)


def parse_mapping(text: str, where: str) -> Mapping:
    """Return the mapping in TOML `text`, or raise InvalidConfiguration."""
    found = decode(text, Mapping, where)
    found.check(where)
    return found


@cache
def quotes_mapping() -> Mapping:
    """Return the mapping of stock quotes, which ships with the package."""
    text = files(__package__).joinpath("quotes.toml").read_text(encoding="utf-8")
    return parse_mapping(text, "quotes.toml")


def load_mapping(path: Path) -> Mapping:
    """Return the mapping in a file, or that of quotes by its name; raise InvalidConfiguration."""
    check_local(path)
    if str(path) == QUOTES and not path.exists():
        return quotes_mapping()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as failure:
        raise InvalidConfiguration(f"there is no mapping {path}") from failure
    except (OSError, UnicodeDecodeError) as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure}") from failure
    return parse_mapping(text, str(path))


def mapping_of(words: str) -> Mapping:
    """Return the mapping of `--attributes`: `[NAME=]COLUMN[:TYPE]` with commas between, or `*`.

    Raises InvalidConfiguration for a type that there is none of, or a name that comes twice.
    """
    where = "--attributes"
    if words.strip() == EVERYTHING:
        return Mapping(rest=True)
    found: dict[str, Attribute] = {}
    for word in map(str.strip, words.split(",")):
        left, _, kind = word.partition(":")
        name, _, column = (part.strip() for part in left.partition("="))
        if not name:
            raise InvalidConfiguration(f"{where}: {word!r} names no column")
        if name in found:
            raise InvalidConfiguration(f"{where}: {name!r} is there twice")
        found[name] = Attribute(column=column, type=_kind(kind.strip(), where) if kind else None)
    mapping = Mapping(attributes=found)
    mapping.check(where)
    return mapping


def _kind(word: str, where: str) -> Kind:
    kinds: Table[str, Kind] = {each.value: each for each in Kind}
    if word not in kinds:
        hint = did_you_mean(word, kinds) or f"; known are {', '.join(kinds)}"
        raise InvalidConfiguration(f"{where}: there is no type {word!r}{hint}")
    return kinds[word]


def with_times(mapping: Mapping, times: Times | None) -> Mapping:
    """Return the mapping with times as an option says, if it says anything."""
    return mapping if times is None else msgspec.structs.replace(mapping, times=times)
