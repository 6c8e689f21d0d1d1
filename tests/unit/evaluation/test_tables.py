"""Tables with every row, as numbers that were worked out by hand."""

from pathlib import Path

import pyarrow.csv as pa_csv
import pytest

from octopis.core.routing import Algorithm
from octopis.evaluation.claims import Claim, Outcome
from octopis.evaluation.experiments import Experiment
from octopis.evaluation.measures import Series
from octopis.evaluation.tables import (
    notes_of,
    run_rows,
    sensitivity,
    series_rows,
    shown,
    value_over_seeds,
    write_csv,
)
from support.measures import measures

BID, SNR, DNR, TNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR, Algorithm.TNR


def outcome(*values: float, unit: str = "%", reason: str = "") -> Outcome:
    claim = Claim(
        where="", text="", paper=1, unit=unit, value=lambda _all, _seed: 0, why=lambda _all: ""
    )
    return Outcome(claim, list(values), direction_holds=True, reason=reason)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "%", "none"),
        (46.96, "%", "47.0"),
        (0.324, "%", "0.32"),
        (-0.5, "%", "-0.50"),
        (-1234.56, "s", "-1234.6"),
        (3.0, "bursts", "3"),
        (0.0, "bursts", "0"),
        (0.9964, "times BID's", "0.996"),
        (1.14, "times BID's", "1.140"),
    ],
)
def test_figures_are_shown_as_people_read_them(value: float | None, unit: str, text: str):
    assert shown(value, unit) == text


def test_spread_is_from_the_least_to_the_most_of_several_seeds():
    assert value_over_seeds(outcome(5, 2, 3)) == "2.0 to 5.0"
    assert value_over_seeds(outcome(5)) == ""
    assert value_over_seeds(outcome()) == ""


def test_reasons_are_numbered_once_each_in_their_order():
    found = [outcome(1, reason=reason) for reason in ("b", "", "a", "b", "c")]
    assert notes_of(found) == {"b": 1, "a": 2, "c": 3}


def varied(point, algorithm):
    """In the quiet scenario SNR has 3/4 of BID's delay, in the burst DNR half of SNR's."""
    if point.experiment is not Experiment.SENSITIVITY:
        return {"notification_delay_mean_ns": 1}
    if point.variation == "tau 20" and point.x and algorithm is DNR:
        return {"notification_delay_mean_ns": 600, "high_rate_queue_mean": 30}
    quiet = {BID: 400, SNR: 300, DNR: 1, TNR: 100}
    burst = {BID: 800, SNR: 400, DNR: 200, TNR: 20}
    return {"notification_delay_mean_ns": (burst if point.x else quiet)[algorithm]}


def test_sensitivity_table_says_percent_less_for_each_variation():
    table = sensitivity(measures(change=varied))
    assert [name for name, _ in table.rows] == [
        "as assumed",
        "send_overhead_us x 0.5",
        "send_overhead_us x 2",
        "matching_per_subscription_ns x 0",
        "identification_ns x 10",
        "tau 20",
        "a subscription every 3 ms",
    ]
    rows = {name: dict(zip(table.columns, values, strict=True)) for name, values in table.rows}
    usual, tau = rows["as assumed"], rows["tau 20"]
    assert usual["notification delay, SNR against BID"] == pytest.approx(25)
    assert usual["burst: delay, DNR against SNR"] == pytest.approx(50)
    assert usual["burst: delay, DNR against BID"] == pytest.approx(75)
    assert usual["burst: queues, DNR against SNR"] == 0
    assert usual["notification delay, TNR against BID"] == pytest.approx(75)
    assert usual["notification IMs, TNR against BID"] == 0
    assert usual["burst: delay, TNR against DNR"] == pytest.approx(90)
    assert tau["notification delay, SNR against BID"] == pytest.approx(25)
    assert tau["burst: delay, DNR against SNR"] == pytest.approx(-50)
    assert tau["burst: queues, DNR against BID"] == pytest.approx(25)


def test_every_run_has_a_row_with_all_that_was_measured():
    found = measures(2)
    columns, rows = run_rows(found)
    assert len(rows) == len(found.all) == 2 * 43 + 56
    assert all(len(row) == len(columns) for row in rows)
    lines = [dict(zip(columns, row, strict=True)) for row in rows]
    (burst,) = [
        line
        for line in lines
        if (line["experiment"], line["x"], line["algorithm"]) == ("burst", 80_000, "dnr")
        and line["seed"] == 2
    ]
    assert (burst["stabilised_s"], burst["equals_truth"]) == (0.0, True)
    assert (burst["high_rate_queue_mean"], burst["subscriptions"]) == (40.0, 500)
    assert lines[0]["stabilised_s"] is None
    assert lines[0]["high_rate_queue_mean"] is None
    assert {line["variation"] for line in lines if line["experiment"] == "sensitivity"} == {
        each.variation for each in (run.point for run in found.of(Experiment.SENSITIVITY))
    }


def test_points_of_figure_11_are_all_there():
    def change(point, algorithm):
        slow = point.x == 60_000 and algorithm is BID
        return {"series": Series([2.0, 9.0], [1.0, 7.0])} if slow else {}

    columns, rows = series_rows(measures(change=change))
    assert columns == ["scenario", "algorithm", "end_s", "delay_max_s"]
    assert len(rows) == 11 * 3 + 2, "twelve runs, of which one has two points"
    assert ["burst-60000-seed1", "bid", 9.0, 7.0] in rows


def test_csv_holds_every_row_and_column(tmp_path: Path):
    path = tmp_path / "new" / "t.csv"
    write_csv(path, ("a", "b", "c"), [("x, y", None, 89), ('"', 1.5, 36.4), ("", 2, None)])
    found = pa_csv.read_csv(path, convert_options=pa_csv.ConvertOptions(strings_can_be_null=False))
    assert found.to_pydict() == {"a": ["x, y", '"', ""], "b": [None, 1.5, 2], "c": [89, 36.4, None]}


def test_csv_without_rows_or_with_an_empty_column_has_its_header(tmp_path: Path):
    write_csv(tmp_path / "a.csv", ("a", "b"), [])
    write_csv(tmp_path / "b.csv", ("a", "b"), [(1, None), (2, None)])
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == '"a","b"\n'
    assert (tmp_path / "b.csv").read_text(encoding="utf-8") == '"a","b"\n1,\n2,\n'
