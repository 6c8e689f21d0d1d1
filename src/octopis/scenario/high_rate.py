"""The high-rate publisher's notifications: a feed of trades, of which quotes have no attribute.

So the subscriptions to quotes never match it, and only those who want the feed get it.
"""

import numpy as np
import pyarrow as pa

from octopis.core.model import Value

FEED = {
    "feed": pa.string(),
    "tick": pa.int64(),
    "bid": pa.float64(),
    "ask": pa.float64(),
    "bid_size": pa.int64(),
    "ask_size": pa.int64(),
    "last": pa.float64(),
    "last_size": pa.int64(),
    "venue": pa.string(),
    "session": pa.string(),
}
"""Its 10 attributes, as many as a quote has."""
_NAME = "hrp"
_VENUES = ("XA", "XB", "XC", "XD")


def wants_feed() -> str:
    """Return the filter of a subscriber who wants the whole feed."""
    return f"feed = '{_NAME}'"


def ticks(count: int, random: np.random.Generator) -> list[dict[str, Value]]:
    """Return the notifications of the feed, in order."""
    columns = tick_columns(count, random)
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def tick_columns(count: int, random: np.random.Generator) -> dict[str, list[Value]]:
    """Return the same in columns."""
    prices = np.round(100 * np.exp(np.cumsum(random.normal(0, 1e-4, count))), 2)
    bid_sizes, ask_sizes, last_sizes = random.integers(1, 1000, (3, count)).tolist()
    venues = random.integers(0, len(_VENUES), count).tolist()
    return {
        "feed": [_NAME] * count,
        "tick": list(range(count)),
        "bid": (prices - 0.01).tolist(),
        "ask": (prices + 0.01).tolist(),
        "bid_size": bid_sizes,
        "ask_size": ask_sizes,
        "last": prices.tolist(),
        "last_size": last_sizes,
        "venue": [_VENUES[venue] for venue in venues],
        "session": ["regular"] * count,
    }
