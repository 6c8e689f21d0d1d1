"""What each attribute's values must keep to, once all types are known: a mapping made concrete."""

from collections.abc import Iterable

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from octopis.pipeline.ingest.mapping import Attribute, Kind, Mapping

_ARROW = {
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.string(),
    Kind.NUMBER: pa.float64(),
    Kind.INTEGER: pa.int64(),
    Kind.BOOLEAN: pa.bool_(),
}


class Rule(Struct, frozen=True):
    """One attribute: its columns, of which the first that is there counts, and its values."""

    name: str
    kind: Kind
    said: Attribute
    in_ns: bool = False
    """Whether a time is an integer, nanoseconds since 1970, and not text."""
    is_optional: bool = False
    """Whether files may lack its column."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it may come from."""
        column = self.said.column
        return column if isinstance(column, tuple) and column else (column or self.name,)  # type: ignore[return-value]  # a text or texts

    @property
    def arrow_type(self) -> pa.DataType:
        """How its values are held."""
        if self.kind is Kind.TIME:
            return pa.int64() if self.in_ns else pa.string()
        return _ARROW[self.kind]

    @property
    def is_range(self) -> bool:
        """Whether subscriptions ask for ranges of it; of others they ask for values."""
        by = self.said.subscribe_by
        return by == "range" if by else self.kind not in (Kind.TEXT, Kind.BOOLEAN)


class Rules(Struct, frozen=True):
    """All attributes of a mapping, in order, with what else it asks of rows."""

    mapping: Mapping
    all: tuple[Rule, ...]

    @property
    def read(self) -> tuple[Rule, ...]:
        """Those that come from columns."""
        return tuple(rule for rule in self.all if rule.said.is_read)

    @property
    def derived(self) -> tuple[Rule, ...]:
        """Those that are expressions of Spark SQL."""
        return tuple(rule for rule in self.all if rule.said.derive is not None)

    @property
    def changes(self) -> tuple[Rule, ...]:
        """Those that are another's change against the row before."""
        return tuple(rule for rule in self.all if rule.said.change_of is not None)

    @property
    def key(self) -> tuple[str, ...]:
        """What no two rows have in common; nothing where rows may be alike."""
        return self.mapping.key

    @property
    def rows_stay_apart(self) -> bool:
        """Whether what becomes of a row is known as soon as it is read."""
        return not (self.key or self.derived or self.mapping.checks)

    @property
    def schema(self) -> pa.Schema:
        """The table of accepted rows."""
        return pa.schema([(rule.name, rule.arrow_type) for rule in self.all])

    def with_kinds(self, kinds: dict[str, Kind]) -> "Rules":
        """Return the rules with other kinds of some attributes, by name."""
        known = tuple(replace(rule, kind=kinds.get(rule.name, rule.kind)) for rule in self.all)
        return replace(self, all=known)


def rules_of(mapping: Mapping, kinds: dict[str, Kind], rest: Iterable[tuple[str, Kind]]) -> Rules:
    """Return the rules of a mapping: `kinds` of attributes whose types it leaves open, by name.

    `rest` are columns that it takes as they are. A derived attribute without a type is a number
    until Spark has said what its expression gives.
    """
    in_ns = mapping.times == "ns"
    found = [
        Rule(name, said.type or kinds.get(name, Kind.NUMBER), said, in_ns)
        for name, said in mapping.attributes.items()
    ]
    found += [Rule(name, kind, Attribute(), in_ns, is_optional=True) for name, kind in rest]
    return Rules(mapping, tuple(found))


def typed_rules(mapping: Mapping) -> Rules:
    """Return the rules of a mapping that says all types itself."""
    assert mapping.is_typed
    return rules_of(mapping, {}, ())
