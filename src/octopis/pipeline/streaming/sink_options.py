"""What a user may say of a sink, and what is wrong with it, before anything is opened."""

from collections.abc import Mapping

import msgspec

from octopis.client.address import Address, parse_addresses, user_of
from octopis.core.wire.moving import NAME_MAX
from octopis.errors import InvalidConfiguration
from octopis.pipeline.streaming.options import (
    Mode,
    known_options,
    mode_of,
    read_secret,
    truth_of,
)
from octopis.pipeline.streaming.staging import Place

_BOTH = ("address", "path", "mode", "secretFile", "credentialsFile", "atLeastOnce")
_OF_SPARK = ("checkpointLocation", "queryName")
STREAM_OPTIONS = (*_BOTH, *_OF_SPARK)
BATCH_OPTIONS = (*_BOTH, "txnAppId", "txnVersion")


class SinkOptions(msgspec.Struct, frozen=True):
    """The options of one sink, checked.

    `transaction` is a name and a number by which a batch is known to be published.
    """

    address: str
    mode: Mode = Mode.PERMISSIVE
    secret_file: str | None = None
    credentials_file: str | None = None
    at_least_once: bool = False
    transaction: tuple[str, int] | None = None

    @property
    def home(self) -> Address:
        """The one broker that knows which batches are published."""
        return parse_addresses(self.address)[0]

    def place_of(self, query: str) -> Place:
        """Return where a query stages its rows."""
        return Place(self.home, self.secret(query), self.credentials_file, user_of(self.address))

    def secret(self, query: str) -> str:
        """Return whose the staged rows are: without a secret, theirs who know the query's id."""
        return read_secret(self.secret_file) or f"query {query}"


def sink_options(given: Mapping[str, str], *, streams: bool) -> SinkOptions:
    """Return the options of a sink, or raise InvalidConfiguration."""
    if streams:
        whose = "df.write, not of df.writeStream: Spark numbers its batches"
        said = known_options(given, STREAM_OPTIONS, BATCH_OPTIONS, whose)
    else:
        whose = "df.writeStream, not of df.write"
        said = known_options(given, BATCH_OPTIONS, STREAM_OPTIONS, whose)
    if "address" in said and "path" in said:
        raise InvalidConfiguration("say the address once: as an option, or in .save(...)")
    address = said.get("address") or said.get("path")
    if not address:
        raise InvalidConfiguration('say where: .option("address", "octopis://127.0.0.1:7400")')
    at_least_once = truth_of(said, "atLeastOnce", default=False)
    if len(parse_addresses(address)) > 1 and not at_least_once:
        raise InvalidConfiguration(
            f"{address} names several brokers, and only one can know which batches it has "
            'published: name one, or say .option("atLeastOnce", "true")'
        )
    transaction = _transaction(said)
    if transaction is not None and at_least_once:
        raise InvalidConfiguration(
            "txnAppId and txnVersion have a batch published once, and atLeastOnce each time that "
            "it is written: leave out one of the two"
        )
    return SinkOptions(
        address=address,
        mode=mode_of(said.get("mode", "PERMISSIVE")),
        secret_file=said.get("secretFile"),
        credentials_file=said.get("credentialsFile"),
        at_least_once=at_least_once,
        transaction=transaction,
    )


def _transaction(said: Mapping[str, str]) -> tuple[str, int] | None:
    name, version = said.get("txnAppId"), said.get("txnVersion")
    if name is None and version is None:
        return None
    if not name or version is None:
        raise InvalidConfiguration("txnAppId and txnVersion are given together, or not at all")
    if len(name) > NAME_MAX:
        raise InvalidConfiguration(f"txnAppId has at most {NAME_MAX} characters, not {len(name)}")
    if not (version.isascii() and version.isdigit() and int(version) < 2**31):
        raise InvalidConfiguration(f"txnVersion is a whole number, not {version!r}")
    return name, int(version)
