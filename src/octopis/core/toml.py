"""Settings: TOML text to typed values and back, with errors that say what is wrong and where.

A setting is declared once, as a field of a struct, with its bounds and what it means:

    window_ms: Annotated[float, Meta(ge=0.001, lt=1e6, description="t_w: ...")] = 50

What reads, checks, writes and documents it takes all of that from there.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidConfiguration

_Document = TypeVar("_Document", bound=Struct)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


# Reading


def decode(text: str, document: type[_Document], where: str) -> _Document:
    """Return TOML `text` as a `document`; `where` names the file in errors.

    Raises InvalidConfiguration for bad syntax (with its line), for a key that `document`
    does not have (with the nearest that it has) and for a value of the wrong type or out of
    its bounds.
    """
    return convert(read(text, where), document, where)


def read(text: str, where: str) -> dict[str, Any]:
    """Return the tables of TOML `text`, or raise InvalidConfiguration for bad syntax."""
    try:
        return tomllib.loads(text)
    except RecursionError as failure:
        raise InvalidConfiguration(f"{where} is nested too deeply") from failure
    except ValueError as failure:
        last_line = f"at line {text.count(chr(10)) + 1}, the end of the document"
        reason = str(failure).replace("at end of document", last_line)
        raise InvalidConfiguration(f"{where} is not valid TOML: {reason}") from failure


def convert(tables: Mapping[str, Any], document: type[_Document], where: str) -> _Document:
    """Return tables that were read as a `document`, as `decode` does."""
    _check_table(tables, document, f"{where}: ", place="")
    try:
        return msgspec.convert(tables, document)
    except msgspec.ValidationError as failure:
        raise InvalidConfiguration(f"{where}: {_readable(str(failure))}") from failure


def check(settings: Struct, place: str) -> None:
    """Raise InvalidConfiguration where a value is out of its bounds; `place` comes before it."""
    _check_table(msgspec.to_builtins(settings), type(settings), "", f"{place}.")


def bounds(kind: Any) -> str:
    """Return what a number of this declared type must be: "above 0 and below 1e9", or ""."""
    least, above, most, below = _limits(kind)
    if least is not None and most is not None:
        return f"between {_short(least)} and {_short(most)}"
    said = [
        "" if least is None else f"{_short(least)} or more",
        "" if above is None else f"above {_short(above)}",
        "" if most is None else f"at most {_short(most)}",
        "" if below is None else f"below {_short(below)}",
    ]
    return " and ".join(filter(None, said))


def _check_table(table: Mapping[str, Any], struct: type[Struct], where: str, place: str) -> None:
    fields = {field.name: field.type for field in msgspec.structs.fields(struct)}
    for key, value in table.items():
        if key not in fields:
            hint = did_you_mean(key, fields) or f"; known here: {', '.join(fields)}"
            raise InvalidConfiguration(f"{where}unknown key '{place}{key}'{hint}")
        kind = fields[key]
        if isinstance(value, int | float) and not is_within(value, kind):
            raise InvalidConfiguration(f"{where}{place}{key} must be {bounds(kind)}, not {value}")
        for inner, at, each in _inside(kind, value):
            if isinstance(each, Mapping) and isinstance(inner, type(Struct)):
                _check_table(each, inner, where, f"{place}{key}{at}.")


def is_within(value: float, kind: Any) -> bool:
    """Tell whether a number is within the bounds of its declared type."""
    least, above, most, below = _limits(kind)
    # Said so that nan, which is neither above nor below anything, is refused.
    return (
        (least is None or value >= least)
        and (above is None or value > above)
        and (most is None or value <= most)
        and (below is None or value < below)
    )


def described(struct: type[Struct], name: str) -> str:
    """Return what a field of a struct is declared to mean."""
    kind = next(field.type for field in msgspec.structs.fields(struct) if field.name == name)
    return next(meta.description for meta in metas(kind) if meta.description)


def _limits(kind: Any) -> tuple[float | None, float | None, float | None, float | None]:
    """Return a declared type's ge, gt, le and lt."""
    for meta in metas(kind):
        if not (meta.ge is meta.gt is meta.le is meta.lt is None):
            return meta.ge, meta.gt, meta.le, meta.lt
    return None, None, None, None


def metas(kind: Any) -> Iterator[Meta]:
    """Yield what is declared about a type: its bounds and its description."""
    for each in get_args(kind):
        if isinstance(each, Meta):
            yield each
        else:
            yield from metas(each)


def _inside(kind: Any, value: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield the type, the place and the value of each table that stands for a key."""
    if isinstance(value, list) and get_origin(kind) is tuple:
        item = get_args(kind)[0]
        yield from ((item, f"[{number}]", each) for number, each in enumerate(value))
    elif isinstance(value, Mapping) and get_origin(kind) is dict:
        item = get_args(kind)[1]
        yield from ((item, f".{encode_text(name)}", each) for name, each in value.items())
    else:
        yield kind, "", value


def _readable(message: str) -> str:
    """Return "Expected `int`, got `str` - at `$.a.b`" with the place first."""
    reason, _, path = message.partition(" - at ")
    place = path.strip("`").removeprefix("$").removeprefix(".")
    reason = reason[0].lower() + reason[1:].replace("`", "'")
    return f"{place}: {reason}" if place else reason


def _short(number: float) -> str:
    return f"{number:g}".replace("e+0", "e").replace("e+", "e")


# Writing


def encode_table(
    name: str, values: Mapping[str, object], comments: Mapping[str, str] | None = None
) -> str:
    """Return a table as TOML, with comments by key; "" is the table's own. None is left out."""
    said = {key: f"  # {comment}" for key, comment in (comments or {}).items()}
    lines = [f"[{name}]{said.get('', '')}\n"]
    lines += [
        f"{key} = {encode_value(value)}{said.get(key, '')}\n"
        for key, value in values.items()
        if value is not None
    ]
    return "".join(lines)


def encode_value(value: object) -> str:
    """Return a number, a text, a boolean, a list of these or a list of lists as TOML."""
    if isinstance(value, Enum):
        return encode_value(value.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return encode_text(value)
    if isinstance(value, list | tuple):
        items = list(map(encode_value, value))
        if any(isinstance(each, list | tuple) for each in value):  # one on each line
            return "".join(["[\n", *(f"  {item},\n" for item in items), "]"])
        return f"[{', '.join(items)}]"
    return repr(value)


def encode_key(name: str) -> str:
    """Return a name as TOML has it where a key stands: bare where it may be."""
    return name if _BARE_KEY.fullmatch(name) else encode_text(name)


def encode_text(text: str) -> str:
    """Return `text` as a TOML string."""
    # JSON strings are TOML strings, but for one control character that only TOML forbids.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
