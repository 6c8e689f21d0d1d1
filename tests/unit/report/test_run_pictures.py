"""Own runs are drawn side by side, whatever the level of their traces tells."""

from pathlib import Path

import numpy as np
import pytest

from octopis.core.routing import Algorithm
from octopis.errors import InvalidConfiguration
from octopis.report.pictures import LOOKS, write_figure
from octopis.report.run_pictures import draw_runs, read_run
from octopis.trace import Level, read_summary
from support.traces import make_scenario, make_trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    scenario = make_scenario(out / "scenario", high_rate_notifications=60)
    for algorithm in (Algorithm.SNR, Algorithm.DNR):
        make_trace(scenario, out / algorithm.value, algorithm, Level.FULL)
    make_trace(scenario, out / "plain", Algorithm.DNR)
    make_trace(scenario, out / "summary", Algorithm.DNR, Level.SUMMARY)
    return out


def test_every_run_has_a_line_in_every_panel_and_its_name_in_the_legend(folder: Path):
    figure = draw_runs([folder / "snr", folder / "dnr"])
    assert [len(panel.lines) for panel in figure.axes] == [2, 2, 2]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["snr", "dnr"]
    assert figure.axes[2].get_title(loc="left") == "(c) Queues over time"
    colours = [line.get_color() for line in figure.axes[0].lines]
    assert colours == [LOOKS[each].colour for each in (Algorithm.SNR, Algorithm.DNR)]


def test_runs_of_one_algorithm_are_told_apart(folder: Path):
    figure = draw_runs([folder / "dnr", folder / "plain"])
    assert len({line.get_color() for line in figure.axes[0].lines}) == 2
    assert figure.axes[2].get_title(loc="left") == "(c) Queues", "one has no windows"


def test_lines_show_what_the_trace_says(folder: Path):
    run = read_run(folder / "snr")
    summary = read_summary(folder / "snr")
    assert len(run.delays_ms) == summary.deliveries
    assert run.longest[0] == summary.queue_length_max == max(run.longest)
    shares, times, _ = draw_runs([folder / "snr"]).axes
    x, y = shares.lines[0].get_data()
    assert (x[-1], y[-1]) == (pytest.approx(run.delays_ms.max()), 1.0)
    assert np.asarray(times.lines[0].get_ydata()).max() == pytest.approx(run.delays_ms.max())


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_picture_is_the_same_to_the_byte(folder: Path, tmp_path: Path, ending: str):
    paths = [tmp_path / f"{name}{ending}" for name in ("one", "other")]
    for path in paths:
        write_figure(draw_runs([folder / "snr"]), [path])
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_trace_that_tells_of_no_deliveries_is_refused(folder: Path):
    with pytest.raises(InvalidConfiguration, match="summary tells of no deliveries: run it at"):
        draw_runs([folder / "summary"])


def test_command_draws_and_does_not_replace_in_silence(octopis, folder: Path, tmp_path: Path):
    out = tmp_path / "runs.svg"
    words = ("trace", "plot", str(folder / "snr"), str(folder / "dnr"), "--out", str(out))
    assert octopis(*words) == (0, f"wrote {out}\n", "")
    assert "<svg" in out.read_text(encoding="utf-8")
    status, _, error = octopis(*words)
    assert (status, "is there already" in error) == (2, True)
    assert octopis(*words, "--force")[0] == 0
