"""A small scenario without Spark: stock quotes, subscribers of 2%, maybe a high-rate publisher.

The same plan gives the same scenario, to the byte.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from octopis.core.filters import print_filter
from octopis.core.model import Value
from octopis.scenario.clients import Clients, attribute_types, ticks
from octopis.scenario.folder import write_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.stock import StockWorkload


def write_example(plan: ScenarioPlan, folder: Path) -> None:
    """Write the scenario of `plan` into a folder that is new or empty."""
    plan.check()
    stock = StockWorkload(plan.seed, plan.selectivity)
    clients = Clients(plan)
    texts = [print_filter(filter_) for filter_ in stock.filters(plan.subscribers)]
    write_scenario(
        folder,
        plan.document(),
        clients.subscriptions(texts),
        clients.publishers(),
        _notifications(plan, stock, clients),
    )


def _notifications(plan: ScenarioPlan, stock: StockWorkload, clients: Clients) -> pa.Table:
    each, count = plan.notifications_each, plan.publishers * plan.notifications_each
    steps = np.arange(each) * clients.step_ns
    times = (clients.starts[:, None] + steps[None, :]).ravel()
    numbers = np.repeat(np.arange(plan.publishers), each)
    sequences = np.tile(np.arange(each), plan.publishers)
    attributes: list[dict[str, Value]] = stock.notifications(count) if count else []
    extra = np.arange(plan.high_rate_notifications)
    for number in range(plan.publishers, plan.publishers + len(clients.high_rate_names)):
        times = np.concatenate([times, clients.high_rate_times()])
        numbers = np.concatenate([numbers, np.full(len(extra), number)])
        sequences = np.concatenate([sequences, extra])
        attributes = attributes + ticks(len(extra), clients.burst)
    order = np.lexsort((numbers, times))
    names = [*clients.names, *clients.high_rate_names]
    publisher = pa.DictionaryArray.from_arrays(pa.array(numbers[order].astype(np.int32)), names)
    return pa.table(
        {
            "publisher": publisher,
            "sequence": pa.array(sequences[order].astype(np.int64)),
            "intended_ns": pa.array(times[order].astype(np.int64)),
            "attributes": pa.array([attributes[place] for place in order], attribute_types(plan)),
        }
    )
