# Run it cell by cell in an editor that knows `# %%`, or as a whole:
#     python examples/queue_over_time.py [TRACE]
# TRACE is a folder that `octopis sim run --level full` has left. Without one, a small burst is
# simulated first.

# %% A trace
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from pyspark.sql import functions as F

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.pipeline.spark.session import open_spark
from octopis.scenario.example import write_example
from octopis.scenario.folder import read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.simulator.run import run
from octopis.trace import Level

if len(sys.argv) > 1:
    traces = [Path(sys.argv[1])]
else:
    burst = ScenarioPlan(
        routing=RoutingOptions(Algorithm.SNR), name="queue-burst", high_rate_notifications=2_000
    )
    write_example(burst, Path("queue-burst"))
    traces = [Path(f"queue-burst-{algorithm}") for algorithm in ("snr", "dnr")]
    for trace, algorithm in zip(traces, (Algorithm.SNR, Algorithm.DNR), strict=True):
        run(read_scenario(Path("queue-burst")).with_algorithm(algorithm), trace, level=Level.FULL)

# %% The longest queue between two clusters in the first trace; window by window, in all of them
with open_spark() as spark:
    queues = {
        trace.name: spark.read.format("octopis.trace")
        .option("table", "queues")
        .load(str(trace.absolute()))
        for trace in traces
    }
    regions = (F.split(end, ",")[0] for end in ("source", "target"))
    between_clusters = queues[traces[0].name].where(next(regions) == next(regions))
    longest = between_clusters.orderBy(F.desc("queue_length")).first()
    series = {
        name: frame.where((F.col("source") == longest.source) & (F.col("target") == longest.target))
        .select(
            ((F.col("window_end_ns") - F.col("begin_ns")) / 1e9).alias("second"),
            "queue_length",
            "algorithm",
        )
        .orderBy("second")
        .toPandas()
        for name, frame in queues.items()
    }

# %% A picture
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for rows in series.values():
    axes.plot(rows["second"], rows["queue_length"], label=rows["algorithm"].iloc[0].upper())
busy = [rows["second"][rows["queue_length"] > 0].max() for rows in series.values()]
axes.set_xlim(0, 1.1 * max(busy))
axes.set_title(f"Output queue from B({longest.source}) to B({longest.target})")
axes.set_xlabel("time since the first notification was due (s)")
axes.set_ylabel("messages in the queue")
axes.legend()
figure.savefig("queue.png", dpi=150)
print("The picture is in queue.png.")
