"""Alerts from a stream, exactly once, though Spark's driver is killed in the middle.

    python examples/streaming_alerts.py [MINUTES]

An overlay of nine brokers with disks. Devices in the north and in the south publish how hot they
are. Spark asks the overlay for the hot readings alone, counts them by device and minute, and writes
an alert back for each minute with three or more; a subscriber prints them. A minute of the devices
takes a second here, and there are 20 unless you say otherwise; 10 at least.

When a quarter of the alerts have come the driver is killed as by `kill -9`, most likely before it
has noted that they are published; it is started again, and the devices go on. In the end the alerts
are compared with what plain Python counts, and all is removed that this has made.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import functions as F

import octopis
from octopis.pipeline.spark.session import open_spark

NORTH, SOUTH, SPARK, DESK = "a,0", "c,0", "b,1", "c,2"  # who is at which broker of figure-7
DEVICES = {NORTH: ["n1", "n2", "n3"], SOUTH: ["s1", "s2", "s3"]}
HOT, OFTEN = 22.0, 3
COLUMNS = ("device", "minute", "readings", "hottest")
LINE = "minute {minute}, {device}: {readings} times hot, up to {hottest:.1f} degrees"
Alert = tuple[Any, ...]  # values of those columns


# Spark's driver, a program of its own


def drive(address: str, folder: str) -> None:
    """Read hot readings and write alerts back, until somebody ends it."""
    with open_spark("local[2]", {"spark.sql.shuffle.partitions": "2"}) as spark:
        readings = (
            spark.readStream.format("octopis")
            .option("address", address)
            .option("filter", f"kind = 'reading' AND celsius > {HOT}")  # brokers do this
            .option("subscription", "hot")  # durable: a broker keeps what comes meanwhile
            .schema("device STRING, second LONG, celsius DOUBLE")
            .load()
        )
        by_minute = (
            readings.withColumn("at", F.timestamp_seconds("second"))
            .withWatermark("at", "1 minute")
            .groupBy("device", F.window("at", "1 minute"))
            .agg(F.count("*").alias("readings"), F.max("celsius").alias("hottest"))
        )
        alerts = by_minute.where(F.col("readings") >= OFTEN).select(
            F.lit("alert").alias("kind"),
            (F.unix_timestamp("window.start") / 60).cast("long").alias("minute"),
            *("device", "readings", "hottest"),
        )
        query = (
            alerts.writeStream.format("octopis")  # a batch that is run again is published once
            .option("address", address)
            .option("checkpointLocation", f"{folder}/checkpoint")
            .start()
        )
        query.awaitTermination()


# The overlay, the devices, and what must come of it


@contextmanager
def overlay(folder: str) -> Iterator[dict[str, str]]:
    """Run an overlay with disks; yield where to connect to each broker."""
    words = [sys.executable, "-m", "octopis", "overlay", "up", "--topology", "figure-7", "--json"]
    words += ["--port", "0", "--durable", f"{folder}/disks", "--state", f"{folder}/state"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            told = b""
            while not told.endswith(b"\n}\n"):
                told += process.stdout.readline() or sys.exit("the overlay did not start")
            yield {name: f"octopis://{at}" for name, at in json.loads(told)["addresses"].items()}
        finally:
            process.terminate()


def measured(minute: int, site: str) -> list[dict[str, Any]]:
    """Return what the devices of a site measure in a minute: the same in every run."""
    chance = random.Random(f"{minute} {site}")
    return [
        {"kind": "reading", "device": device, "second": second, "celsius": chance.gauss(20, 4)}
        for second in range(60 * minute, 60 * minute + 60, 10)
        for device in DEVICES[site]
    ]


def alerts_by_plain_python(minutes: int) -> Counter[Alert]:
    """Return the alerts that must come, each once."""
    hot = defaultdict(list)
    for minute in range(minutes):
        for reading in measured(minute, NORTH) + measured(minute, SOUTH):
            if reading["celsius"] > HOT:
                hot[reading["device"], minute].append(reading["celsius"])
    return Counter((*key, len(row), max(row)) for key, row in hot.items() if len(row) >= OFTEN)


def publish(north: octopis.SyncClient, south: octopis.SyncClient, minutes: int) -> Iterator[int]:
    """Publish minute by minute, and yield how many hot readings there were so far."""
    hot = 0
    for minute in range(minutes):
        for client, site in ((north, NORTH), (south, SOUTH)):
            client.publish_many(readings := measured(minute, site))
            hot += sum(reading["celsius"] > HOT for reading in readings)
        yield hot
    # One more, much later: by it Spark knows that all these minutes are over.
    later = 60 * (minutes + 10)
    north.publish({"kind": "reading", "device": "end", "second": later, "celsius": HOT + 1})
    yield hot + 1


class Watch:
    """Has the driver run, and prints the alerts that come; after so many, it kills the driver."""

    def __init__(self, alerts: octopis.SyncNotifications, kill_after: float, *words: str) -> None:
        self._alerts, self._kill_after, self._words = alerts, kill_after, words
        self._environment = {**os.environ, "TMPDIR": words[-1]}  # what is killed tidies nothing up
        self.received: Counter[Alert] = Counter()
        self.is_killed = False
        self.start()

    def start(self) -> None:
        """Start the driver, with its Java in a group of processes that is theirs."""
        words = [sys.executable, __file__, "drive", *self._words]
        self._driver = subprocess.Popen(words, env=self._environment, start_new_session=True)

    def kill(self) -> None:
        """End the driver and its Java at once, whatever they are doing."""
        with suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(self._driver.pid, signal.SIGKILL)
        self._driver.wait()

    def look(self, for_s: float) -> None:
        """Print and count what comes within some seconds."""
        end = time.monotonic() + for_s
        while (left_s := end - time.monotonic()) > 0:
            if self._driver.poll() is not None:
                sys.exit("Spark's driver has ended by itself, and has said why")
            if found := self._alerts.next(timeout=left_s):
                print(LINE.format(**found.attributes))
                self.received[tuple(found.attributes[name] for name in COLUMNS)] += 1
                if not self.is_killed and self.received.total() >= self._kill_after:
                    self.is_killed = True
                    self.kill()
                    print("The driver is killed, and started again; the devices go on.")
                    self.start()

    def look_until(self, holds: Callable[[], bool], limit_s: float = 300) -> None:
        """Print and count what comes until something holds, or for so long."""
        end = time.monotonic() + limit_s
        while not holds() and time.monotonic() < end:
            self.look(0.2)


def main(minutes: int) -> int:
    """Run all, and return the exit status: 1 where an alert is missing, or came twice."""
    wanted = alerts_by_plain_python(minutes)
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
        brokers = stack.enter_context(overlay(folder))
        north, south, spark, desk = (
            stack.enter_context(octopis.connect_sync(brokers[name]))
            for name in (NORTH, SOUTH, SPARK, DESK)
        )
        alerts = stack.enter_context(desk.subscribe("kind = 'alert'"))
        print("The overlay is up; Spark starts.")
        watch = Watch(alerts, wanted.total() / 4, brokers[SPARK], folder)
        stack.callback(watch.kill)
        watch.look_until(lambda: len(spark.durables()) == 1)  # Spark makes it when it first starts
        spark.settled()
        for minute, hot in enumerate(publish(north, south, minutes)):
            # All of a minute is kept before the next one is published: so nothing is ever late.
            watch.look_until(lambda due=hot: spark.durables()[0].end == due)
            watch.look(1)
            if minute == minutes // 2:  # Spark may be slow today, and is killed in the middle
                watch.look_until(lambda: watch.is_killed)
        watch.look_until(lambda: watch.received.total() >= wanted.total())
        watch.look(2)  # what is there twice would come now
    return compare(wanted, watch.received)


def compare(wanted: Counter[Alert], received: Counter[Alert]) -> int:
    """Say whether what came is exact; return 1 where it is not."""
    lost, surplus = (wanted - received).total(), (received - wanted).total()
    print(f"{wanted.total()} alerts were due, by plain Python: {lost} lost, {surplus} too many.")
    return 1 if lost or surplus else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as by Ctrl-C
    try:
        if sys.argv[1:2] == ["drive"]:
            drive(*sys.argv[2:])
        else:
            sys.exit(main(max(10, int(sys.argv[1])) if sys.argv[1:] else 20))
    except KeyboardInterrupt:
        sys.exit(130)
