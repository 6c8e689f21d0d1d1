"""A trace of any size without a run: deliveries at random, for measuring what reads traces."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from octopis.trace import Level, RunSummary, write_summary
from octopis.trace.writer import TraceWriter
from octopis.version import __version__

PUBLISHERS = 100
PER_NOTIFICATION = 200
_BATCH = 250_000


def write_made_trace(folder: Path, deliveries: int, seed: int) -> Path:
    """Write the tables of a run with so many deliveries, 200 of each notification."""
    random = np.random.default_rng(seed)
    each = max(1, deliveries // PER_NOTIFICATION // PUBLISHERS)
    count = each * PUBLISHERS
    names = {
        "publisher": [f"p{number:04d}" for number in range(PUBLISHERS)],
        "subscription": [f"s{number:05d}" for number in range(10_000)],
        "broker": [f"r{number // 5},{number % 5}" for number in range(75)],
    }

    def name(kind: str, numbers: np.ndarray) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), names[kind])

    with TraceWriter(folder, Level.DELIVERIES) as writer:
        publishers, sequences = np.divmod(np.arange(count), each)
        intended = sequences * 1_000_000_000
        writer.write(
            "publications",
            {
                "publisher": name("publisher", publishers),
                "sequence": sequences,
                "intended_ns": intended,
                "matching_ns": random.integers(1_000, 1_000_000, count),
            },
        )
        for start in range(0, deliveries, _BATCH):
            rows = np.arange(start, min(start + _BATCH, deliveries)) // PER_NOTIFICATION % count
            delays = random.lognormal(17, 1.5, len(rows)).astype(np.int64)
            writer.write(
                "deliveries",
                {
                    "publisher": name("publisher", publishers[rows]),
                    "sequence": sequences[rows],
                    "subscription": name("subscription", random.integers(0, 10_000, len(rows))),
                    "broker": name("broker", random.integers(0, 75, len(rows))),
                    "delivered_ns": intended[rows] + delays,
                    "delay_ns": delays,
                    "hops": random.integers(0, 6, len(rows)).astype(np.int16),
                },
            )
    write_summary(folder, _summary(deliveries, count, seed, each))
    return folder


def _summary(deliveries: int, notifications: int, seed: int, each: int) -> RunSummary:
    return RunSummary(
        version=__version__,
        source="simulator",
        scenario="made",
        scenario_digest="",
        seed=seed,
        algorithm="snr",
        level=Level.DELIVERIES.value,
        state="complete",
        begin_ns=0,
        end_ns=each * 1_000_000_000,
        brokers=75,
        subscriptions=10_000,
        notifications=notifications,
        deliveries=deliveries,
        deliveries_lost=0,
        subscription_ims=0,
        subscription_duplicates=0,
        notification_ims=0,
        dnr_cases={},
        queue_length_max=0,
        input_wait_max_ns=0,
        queue_bounds=[],
    )
