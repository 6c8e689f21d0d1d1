"""TOML text to typed values, with errors that say what is wrong and where."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidConfiguration

_Document = TypeVar("_Document", bound=msgspec.Struct)


def decode(text: str, document: type[_Document], where: str) -> _Document:
    """Return TOML `text` as a `document`; `where` names the file in errors.

    Raises InvalidConfiguration for bad syntax (with its line), for a key that `document`
    does not have (with the nearest that it has) and for a value of the wrong type.
    """
    return convert(read(text, where), document, where)


def convert(tables: Mapping[str, Any], document: type[_Document], where: str) -> _Document:
    """Return tables that were read as a `document`, as `decode` does."""
    _check_keys(tables, document, where, place="")
    try:
        return msgspec.convert(tables, document)
    except msgspec.ValidationError as failure:
        raise InvalidConfiguration(f"{where}: {_readable(str(failure))}") from failure


def encode_text(text: str) -> str:
    """Return `text` as a TOML string."""
    # JSON strings are TOML strings, but for one control character that only TOML forbids.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


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


def _check_keys(
    table: Mapping[str, Any], struct: type[msgspec.Struct], where: str, place: str
) -> None:
    fields = {field.name: field.type for field in msgspec.structs.fields(struct)}
    for key, value in table.items():
        if key not in fields:
            hint = did_you_mean(key, fields) or f"; known here: {', '.join(fields)}"
            raise InvalidConfiguration(f"{where}: unknown key '{place}{key}'{hint}")
        for inner, at, each in _inside(fields[key], value):
            if isinstance(each, Mapping) and isinstance(inner, type(msgspec.Struct)):
                _check_keys(each, inner, where, f"{place}{key}{at}.")


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
