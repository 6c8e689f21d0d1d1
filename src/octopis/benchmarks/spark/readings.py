"""`octopis bench pipeline` on data of another shape than quotes: a recording of sensors."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from octopis.benchmarks.spark.figures import PipelineFigure, driver_memory, timed
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import from_catalogue
from octopis.pipeline.ingest.folder import read_data
from octopis.pipeline.ingest.ingest import ingest
from octopis.pipeline.ingest.mapping import mapping_of
from octopis.pipeline.scenarios.build import Choices, build
from octopis.pipeline.scenarios.recording import Replay
from octopis.pipeline.scenarios.truth import write_truth
from octopis.scenario.folder import read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.wanted import WantedSubscription

ROWS = 1_000_000
SUBSCRIPTIONS = 10_000
DEVICES = 500
SHARES = (0.1, 1.0)
"""Of the rows: the driver must need no more memory for ten times as many."""

_ATTRIBUTES = "device=device.id,site=device.site,at:time,temperature,humidity,battery,ok"
_START_S = 1_714_521_600


def any_data(
    spark: SparkSession, folder: Path, scale: float, seed: int
) -> Iterator[PipelineFigure]:
    """Yield the seconds of an ingest of JSON lines, and of ground truths with their memory."""
    count = round(ROWS * scale)
    path = folder / "readings.jsonl"
    write_readings(path, count, seed)
    took_s = timed(lambda: ingest(spark, [path], folder / "read", mapping_of(_ATTRIBUTES)))
    size = f"{count:,} rows"
    yield PipelineFigure("ingest of JSON lines, types looked for", size, took_s, "s", "at most 40")
    takes = []
    for share in SHARES:
        figures = _truth(spark, folder, share, scale, seed)
        yield from figures
        takes.append(sum(figure.value for figure in figures if figure.unit == "MB"))
    more = takes[-1] - takes[0]
    yield PipelineFigure("the driver, for ten times as many rows", size, more, "MB more", "level")


def _truth(
    spark: SparkSession, folder: Path, share: float, scale: float, seed: int
) -> list[PipelineFigure]:
    data = read_data(spark, folder / "read")
    until = _time(round(ROWS * scale * share))
    part = data._replace(frame=data.frame.where(data.frame["at"] < until))
    plan = ScenarioPlan(
        routing=RoutingOptions(Algorithm.SNR), topology=from_catalogue("paper"), seed=seed
    )
    choices = Choices(_subscriptions(round(SUBSCRIPTIONS * scale), seed), Replay("device", "at"))
    name = f"recording-{share:g}"
    report = build(spark, part, plan, folder / name, choices)
    scenario = read_scenario(folder / name)
    took_s = timed(lambda: write_truth(spark, scenario, folder / f"{name}-truth"))
    with driver_memory(spark) as (python, java):  # once more: to look costs time
        write_truth(spark, scenario, folder / f"{name}-watched")
    size = f"{report.notifications:,} x {report.subscriptions:,}"
    return [
        PipelineFigure("ground truth of a recording", size, took_s, "s"),
        PipelineFigure("... what the driver's Python takes more", size, python.mb, "MB", "level"),
        PipelineFigure("... what lives in the driver's Java", size, java.mb, "MB", "level"),
    ]


def _subscriptions(count: int, seed: int) -> list[WantedSubscription]:
    """Return filters of about 0.2% of the readings each."""
    draw = np.random.default_rng([seed, 1])
    devices = draw.integers(0, DEVICES, (count, 5))
    lows = np.round(draw.normal(20, 4, count), 1)
    return [
        WantedSubscription(
            f"device IN ({', '.join(repr(_device(each)) for each in wanted)}) "
            f"AND temperature BETWEEN {low} AND {low + 2.5:.1f}"
        )
        for wanted, low in zip(devices.tolist(), lows.tolist(), strict=True)
    ]


def write_readings(path: Path, count: int, seed: int) -> None:
    """Write seeded readings as JSON lines, ten a second."""
    draw = np.random.default_rng(seed)
    devices = draw.integers(0, DEVICES, count).tolist()
    temperatures = np.round(draw.normal(20, 5, count), 2).tolist()
    humidities = draw.integers(20, 95, count).tolist()
    batteries = np.round(draw.random(count), 3).tolist()
    is_ok = (draw.random(count) < 0.97).tolist()
    values = zip(devices, temperatures, humidities, batteries, is_ok, strict=True)
    with path.open("w", encoding="utf-8") as lines:
        for number, (device, temperature, humidity, battery, ok) in enumerate(values):
            reading = {
                "device": {"id": _device(device), "site": f"site-{device % 12}"},
                "at": _time(number),
                "temperature": temperature,
                "humidity": humidity,
                "battery": battery,
                "ok": ok,
            }
            lines.write(json.dumps(reading) + "\n")


def _device(number: int) -> str:
    return f"device-{number:04d}"


def _time(number: int) -> str:
    """Return when a reading was taken, as ingested times are written."""
    moment = np.datetime64(_START_S * 1_000_000 + number * 100_000, "us")
    return f"{np.datetime_as_string(moment, unit='us')}Z"
