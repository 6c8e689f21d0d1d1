"""Targets that are texts: filters in each dialect, access.toml, audit logs."""

import operator
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from octopis.benchmarks.fuzz.laws import Check, hold, ours, soon
from octopis.core.filters import Filter, attr, quick
from octopis.core.filters.explain import explain
from octopis.core.filters.padres import parse_padres, print_padres
from octopis.core.filters.quick import Test
from octopis.core.filters.sql import parse_sql
from octopis.core.model import Value
from octopis.errors import InvalidConfiguration, InvalidFilter
from octopis.security.access import parse_access
from octopis.security.audit import AuditLog, verify

NOTIFICATIONS: tuple[dict[str, Value], ...] = (
    {},
    {"a": 1, "b": "text", "c": True, "price": 51.5, "symbol": "IBM", "volume": 7},
    {"a": "a%_b", "b": 2**62, "c": -1.5, "x": "", "y": float(2**53), "é": "\U0010ffff"},
    {"a": "ab" * 500, "b": False, "c": "it's", "x": -(2**63), "y": 5e-324},
)

# Filters


def check_sql(data: bytes) -> None:
    """Read a filter in SQL, and do with it what a broker does."""
    _read(parse_sql, data.decode("utf-8", "surrogateescape"))


def check_padres(data: bytes) -> None:
    """The same of one in the padres dialect."""
    _read(parse_padres, data.decode("utf-8", "surrogateescape"))


def _read(parse: Callable[[str], Filter], text: str) -> None:
    try:
        found = soon(lambda: parse(text), "reading it")
    except InvalidFilter as failure:
        is_placed = failure.column is None or 1 <= failure.column <= len(text) + 1
        hold(bool(failure.reason) and is_placed, "the place of a fault is outside of the text")
        str(failure).encode("utf-8", "backslashreplace")
        return
    check_filter(found)


def check_filter(found: Filter) -> None:
    """Raise Broken unless a filter can be said again in each dialect, matched and explained."""
    with ours():
        again = soon(lambda: parse_sql(str(found)), "reading its normal form")
        hold(again == found, "its normal form is another filter")
    try:
        said = soon(lambda: print_padres(found), "writing it in the padres dialect")
    except InvalidFilter:
        said = ""
    if said:
        with ours():
            again = soon(lambda: parse_padres(said), "reading that again")
            hold(again == found, "in the padres dialect it is another filter")
    test = soon(lambda: quick(found), "making a function of it")
    opposite = soon(lambda: _opposite(found), "turning it over")
    for attributes in NOTIFICATIONS:
        soon(lambda: _match(found, opposite, test, attributes), "matching it")  # noqa: B023 - at once
        soon(lambda: _explain(found, attributes), "explaining it")  # noqa: B023 - at once


def _opposite(found: Filter) -> Filter | None:
    try:
        return ~found
    except InvalidFilter:  # written out, it may be too long
        return None


def _match(
    found: Filter, opposite: Filter | None, test: Test, attributes: dict[str, Value]
) -> None:
    truth = found.truth(attributes)
    hold(found.matches(attributes) is (truth is True), "matching and truth differ")
    hold(test(attributes) is (truth is True), "as a function, it is another filter")
    if opposite is not None:
        turned = opposite.truth(attributes)
        hold(turned is (None if truth is None else not truth), "NOT is wrong")


def _explain(found: Filter, attributes: dict[str, Value]) -> None:
    shown = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}[found.truth(attributes)]
    hold(explain(found, attributes).truth == shown, "it is explained as something else")


def check_python(data: bytes) -> None:
    """Build a filter by what the bytes say, step by step, as a program may do."""
    built: list[Any] = []
    try:
        for at in range(0, len(data), 2):
            _step(built, data[at], data[at + 1 :][:1], data[at + 1 : at + 12])
        filters = [each for each in built if isinstance(each, Filter)]
        found = reduce(operator.and_, filters) if filters else None
    except InvalidFilter as failure:
        str(failure)
        return
    if found is not None:
        check_filter(found)


_COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv, operator.mod)
_NAMES = ("a", "b", "c", "x", "y", "and", 'odd "name"', "é", "")


def _step(  # noqa: C901 - a case for each way to build one
    built: list[Any], what: int, which: bytes, more: bytes
) -> None:
    """Put something on the pile of what is built, or make one of two that are on it."""
    number = which[0] if which else 0
    last = built[-1] if built else attr("a")
    name = attr(_NAMES[number % 8]) if number % 31 else attr(_NAMES[number % len(_NAMES)])
    value = _value(number, more)
    match what % 12:
        case 0 | 1:
            built.append(_COMPARISONS[number % 6](name, value))
        case 2 if not isinstance(last, Filter):
            built.append(_ARITHMETIC[number % 5](last, value if number % 3 else name))
        case 3:
            built.append(name.is_in([value, _value(number + 1, more)]))
        case 4:
            built.append(name.like(str(value), "!" if number % 2 else None))
        case 5:
            built.append((name.startswith, name.endswith, name.contains)[number % 3](str(value)))
        case 6:
            built.append((name.is_null, name.is_present, name.is_true)[number % 3]())
        case 7 if built and isinstance(last, Filter):
            built[-1] = ~last
        case 8 | 9 if len(built) > 1 and isinstance(last, Filter):
            other = built[-2]
            if isinstance(other, Filter):
                built[-2:] = [(last & other) if number % 2 else (last | other)]
        case 10 if built and not isinstance(last, Filter):
            built[-1] = _COMPARISONS[number % 6](last, value)
        case _:
            built.append(-name if number % 2 else name)


def _value(number: int, more: bytes) -> Any:
    match number % 6:
        case 0:
            return struct.unpack("<d", more[:8].ljust(8, b"\0"))[0]
        case 1:
            return int.from_bytes(more[:9], "little", signed=True)
        case 2:
            return more.decode("utf-8", "surrogateescape")
        case 3:
            return bool(more[:1])
        case 4:
            return number
        case _:
            return more.decode("latin-1")


def sql_seeds() -> list[bytes]:
    """Return filters in SQL, and what is nearly one."""
    return [
        b"price > 50 AND (symbol = 'IBM' OR volume IS NULL)",
        b"NOT (a BETWEEN 1 AND 5) AND b NOT IN ('x', 'y', TRUE, -3.5e2)",
        b"a LIKE 'x!%%' ESCAPE '!' OR -a + 2 * b % 3 <> c / 4",
        b"x IN (1, 2, 3) AND flag = TRUE",
        "note IS NOT NULL AND \"odd name\" <> 'é' OR c".encode(),
        b"a = 9223372036854775807 OR b = -9223372036854775808 OR c > 1e308",
        b"a LIKE '%a_b%c%' AND a NOT LIKE 'b%' AND x = 0x1F AND y <= 1.5f AND a <> 5L",
        b"((((a + 1) * (b - 2)) / 3) % 4) >= -(-5) AND NOT NOT x",
        b"a = 1 -- comment",
    ]


def padres_seeds() -> list[bytes]:
    """Return filters in the padres dialect, and what is nearly one."""
    return [
        b"[class,eq,'STOCK'],[price,>,20],[price,<,30]",
        b"[symbol,str-prefix,'AB'],[halted,eq,false],[\"odd name\",isPresent,'']",
        b'[a,neq,1],[b,str-contains,"x"],[b,str-lt,z];',
        b"[a,<>,-1.5e3],[b,str-postfix,A-B],[c,=,TRUE]",
    ]


def python_seeds() -> list[bytes]:
    """Return steps that build filters."""
    return [bytes(range(at, at + 40)) for at in range(0, 200, 20)] + [b"\0\1\7\0\10\1\3\2\11\3"]


SQL_WORDS = (
    b" AND ", b" OR ", b"NOT ", b" BETWEEN ", b" IN (", b" LIKE '", b" ESCAPE '", b" IS NULL",
    b"TRUE", b"FALSE", b"<>", b"!=", b"<=", b">=", b"--", b"/*", b"'%a_'", b"9223372036854775808",
    b"1e999", b"0x1F", b"042", b"\"", b"''", b"\xd9\xa3",
)  # fmt: skip
PADRES_WORDS = (
    b"[a,", b"eq,", b"neq,", b"isPresent,", b"str-prefix,", b"str-postfix,", b"str-contains,",
    b"str-lt,", b"str-ge,", b"'x']", b"],[", b";", b"true", b"-1.5e9", b"<>,",
)  # fmt: skip

# access.toml


def check_access(data: bytes) -> None:
    """Read an access.toml, and what its users may do."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return  # as read_access says before
    try:
        access = parse_access(text, "access.toml")
    except InvalidConfiguration as failure:
        hold("access.toml" in str(failure), "an error does not name the file")
        return
    for user in access.users.values():
        permissions = access.permissions(user.roles)
        for attributes in NOTIFICATIONS:
            permissions.may_see(attributes)
            permissions.may_publish(attributes)


def access_seeds() -> list[bytes]:
    """Return files, with all that one may say."""
    from octopis.benchmarks.fuzz.logins import ACCESS  # noqa: PLC0415 - its libraries are extra
    from octopis.security.making import ACCESS as NEW  # noqa: PLC0415 - the same

    line = f"SCRAM-SHA-256$4096:{'A' * 22}==${'A' * 43}=:{'A' * 43}="
    every = (
        '[roles.trader]\npublish = "topic = \'orders\'"\nsubscribe = "price < 1000"\n'
        'deny_publish = "kind = \'admin\'"\ndeny_subscribe = "secret"\nforce = { tenant = "a" }\n'
        "durable = true\nstatus = false\n"
        '[users.alice]\nroles = ["trader"]\n[revoked]\ncertificates = ["0A:1B"]\n'
        'tokens = ["id"]\nusers = ["mallory"]\n'
    )
    return [each.encode() for each in (every, NEW, ACCESS.format(line))]


# Audit logs


class _Held:
    """Stands for a file that holds bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, _: str) -> BytesIO:
        return BytesIO(self._data)


@contextmanager
def audit() -> Iterator[Check]:
    """Verify a log, and go on with it: where it is right up to its end, one more line is right."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b,0.jsonl"

        def check(data: bytes) -> None:
            found = verify(cast("Path", _Held(data)))
            hold(found.lines <= data.count(b"\n"), "it counts lines that are not there")
            path.write_bytes(data)
            try:
                log = AuditLog(path, clock=lambda: 1.0)
            except InvalidConfiguration:
                hold(bool(found.fault), "a log that is right cannot be gone on with")
                return
            log.write("login", user="alice\n\u2028", number_of=1)
            log.close()
            after = verify(path)
            hold(bool(found.fault) == bool(after.fault), "going on changes whether it is right")

        yield check


def audit_seeds() -> list[bytes]:
    """Return logs: a right one, some that were cut off, changed, or made of two."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        log = AuditLog(path, clock=lambda: 1.0)
        for number in range(3):
            log.write("login", user=f"alice{number}", roles=["trader"], note="é\n")
        log.close()
        whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    return [b"", whole, whole[:-5], whole[:-1], b"".join(lines[1:]), whole + lines[0], lines[0]]
