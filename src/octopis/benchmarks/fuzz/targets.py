"""All that is fuzzed, by name."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from msgspec import Struct

from octopis.benchmarks.fuzz import client, decoders, handshake, logins, texts
from octopis.benchmarks.fuzz.laws import LIMIT_S, Check
from octopis.benchmarks.fuzz.mutation import (
    INPUT_MAX,
    Mutate,
    mutate_frame,
    mutate_stream,
    mutated,
)

WIRE, FILTERS, FILES = "wire", "filters", "files"
"""Groups: frames, messages and the handshake; filters; and what is read from disk."""

TEXT_MAX = 4_200
_STEPS_S = 20 * LIMIT_S
"""A little longer than a filter may be."""


class Target(Struct, frozen=True):
    """What is fuzzed, and with what inputs it begins."""

    name: str
    group: str
    make: Callable[[], AbstractContextManager[Check]]
    seeds: Callable[[], list[bytes]]
    mutate: Mutate = mutated
    words: tuple[bytes, ...] = ()
    size_max: int = INPUT_MAX
    limit_s: float = LIMIT_S
    """CPU time for an input; more where a check looks at the time of each of its steps."""


def _plain(check: Check) -> Callable[[], AbstractContextManager[Check]]:
    return lambda: nullcontext(check)


_MESSAGES = [
    Target(name, WIRE, _plain(check), found, mutate_frame)
    for name, (check, found) in decoders.MESSAGES.items()
]

_BY_STREAM = mutate_stream(1)
_BEHIND_TLS = mutate_stream(2)

_ALL = [
    Target(
        "frames",
        WIRE,
        _plain(decoders.check_frames),
        decoders.frame_seeds,
        mutate_stream(6),
    ),
    *_MESSAGES,
    Target("reception", WIRE, handshake.reception, handshake.connection_seeds, _BY_STREAM),
    Target("clients-door", WIRE, handshake.clients_door, handshake.door_seeds, _BEHIND_TLS),
    Target("links-door", WIRE, handshake.links_door, handshake.door_seeds, _BEHIND_TLS),
    Target("answered", WIRE, handshake.answered, handshake.connection_seeds, _BY_STREAM),
    Target("client", WIRE, client.client, client.client_seeds, _BY_STREAM),
    Target("challenged", WIRE, client.challenged, client.challenge_seeds, size_max=1_200),
    Target("first-message", WIRE, logins.first_messages, logins.password_seeds, size_max=1_200),
    Target("proof", WIRE, logins.proofs, logins.proof_seeds, size_max=120),
    Target("claims", WIRE, logins.claims, logins.claims_seeds, size_max=3_000),
    Target("token", WIRE, logins.tokens, logins.token_seeds, size_max=4_200),
    Target(
        "sql", FILTERS, _plain(texts.check_sql), texts.sql_seeds, words=texts.SQL_WORDS,
        size_max=TEXT_MAX, limit_s=_STEPS_S,
    ),
    Target(
        "padres", FILTERS, _plain(texts.check_padres), texts.padres_seeds,
        words=texts.PADRES_WORDS, size_max=TEXT_MAX, limit_s=_STEPS_S,
    ),
    Target(
        "python", FILTERS, _plain(texts.check_python), texts.python_seeds, size_max=400,
        limit_s=_STEPS_S,
    ),
    Target("access", FILES, _plain(texts.check_access), texts.access_seeds, size_max=3_000),
    Target("audit", FILES, texts.audit, texts.audit_seeds, size_max=3_000),
]  # fmt: skip

TARGETS = {each.name: each for each in _ALL}
