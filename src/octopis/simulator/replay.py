"""A violated law, seen again: the same run once more, up to the moment, with every message."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from octopis.core.routing import Algorithm
from octopis.errors import InvalidConfiguration, LawViolated
from octopis.files import write_json
from octopis.scenario.folder import Scenario

FILE = "violation.json"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to see a violation again."""

    scenario: str
    scenario_digest: str
    algorithm: Algorithm
    real_brokers: bool
    law: str
    detail: str
    seed: int
    time_ns: int
    broker: str
    publisher: str | None
    sequence: int | None
    dead: tuple[str, ...] = ()
    """Brokers that were dead, whatever the scenario says."""

    @classmethod
    def of(cls, violation: LawViolated, scenario: Scenario, *, real_brokers: bool) -> "Evidence":
        """Return the evidence of a violation in a run of `scenario`."""
        publisher, sequence = violation.notification or (None, None)
        return cls(
            scenario=str(scenario.folder.resolve()),
            scenario_digest=scenario.digest,
            algorithm=scenario.document.routing.algorithm,
            real_brokers=real_brokers,
            law=violation.law,
            detail=violation.detail,
            seed=violation.seed,
            time_ns=violation.time_ns,
            broker=violation.broker,
            publisher=publisher,
            sequence=sequence,
            dead=tuple(sorted(broker.short for broker in scenario.dead)),
        )


def write_evidence(folder: Path, evidence: Evidence) -> None:
    """Leave the evidence beside the trace."""
    write_json(folder / FILE, evidence)


def read_evidence(folder: Path) -> Evidence:
    """Return the evidence in a trace's folder, or raise InvalidConfiguration."""
    path = folder / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Evidence)
    except FileNotFoundError as failure:
        reason = f"there is no {path}: only a run that violated a law can be replayed"
        raise InvalidConfiguration(reason) from failure
    except (OSError, msgspec.DecodeError) as failure:
        raise InvalidConfiguration(f"{path} is not a violation: {failure}") from failure


def moments_before(trace: Path, evidence: Evidence, last_ms: float) -> list[dict[str, Any]]:
    """Return the last messages at the broker, and all of the notification, from a full trace."""
    messages = pq.read_table(trace / "ims.parquet")
    broker = pc.or_(
        pc.equal(messages["source"], evidence.broker), pc.equal(messages["target"], evidence.broker)
    )
    recent = pc.and_(
        pc.less_equal(messages["enqueued_ns"], evidence.time_ns),
        pc.greater_equal(messages["enqueued_ns"], evidence.time_ns - round(last_ms * 1e6)),
    )
    wanted = pc.and_(broker, recent)
    if evidence.publisher is not None:
        same = pc.and_(
            pc.equal(messages["publisher"], evidence.publisher),
            pc.equal(messages["sequence"], evidence.sequence),
        )
        wanted = pc.or_(wanted, pc.fill_null(same, False))
    found: pa.Table = messages.filter(wanted).sort_by("enqueued_ns")
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows
