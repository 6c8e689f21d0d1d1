"""Figures show every algorithm by its label, on axes that say what and in which unit."""

from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopis.core.routing import Algorithm
from octopis.evaluation.experiments import Experiment
from octopis.evaluation.figures import all_figures
from octopis.evaluation.measures import Measures, Series
from octopis.report.pictures import LOOKS, write_figure
from support.measures import Change, measures

BID, SNR, DNR, TNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR, Algorithm.TNR
NAMES = ("figure-9", "figure-10", "figure-11", "several-hrps")

AXES = {
    "figure-9": [
        ("(a) IMs of subscription broadcast", "subscribers", "IMs"),
        ("(b) Subscription delay", "subscribers", "mean delay (ms)"),
        ("(c) Notification delay", "subscribers", "mean delay (ms)"),
        ("(d) IMs of notification routing", "subscribers", "IMs"),
    ],
    "figure-10": [
        ("(a) Matching delay", "subscribers", "mean per notification (ms)"),
        ("(b) Notification delay", "publishers", "mean delay (ms)"),
        ("(c) IMs of notification routing", "publishers", "IMs"),
        ("(d) Matching delay", "publishers", "mean per notification (ms)"),
    ],
    "figure-11": [
        ("(a) HRP at 100K a minute", "time of delivery (s)", "longest delay of 1,000 (s)"),
        ("(b) HRP at 80K a minute", "time of delivery (s)", ""),
        ("(c) HRP at 60K a minute", "time of delivery (s)", ""),
    ],
    "several-hrps": [
        ("(a) Notification delay", "high-rate publishers", "mean delay (s)"),
        ("(b) Lead over SNR", "high-rate publishers", "less delay (%)"),
    ],
}


def figures(change: Change, seeds: int = 1) -> dict[str, Figure]:
    return {name: figure for name, (figure, _) in all_figures(measures(seeds, change)).items()}


def line(panel: Axes, algorithm: Algorithm) -> list[tuple[float, float]]:
    """Return the points of an algorithm's line."""
    (found,) = [each for each in panel.lines if each.get_label() == LOOKS[algorithm].label]
    return [(float(x), float(y)) for x, y in zip(*found.get_data(), strict=True)]


@pytest.fixture(scope="module")
def usual() -> dict[str, Figure]:
    return figures(lambda _point, _algorithm: {})


@pytest.mark.parametrize("name", NAMES)
def test_axes_say_what_they_show_and_in_which_unit(usual: dict[str, Figure], name: str):
    panels = usual[name].axes
    found = [(each.get_title(loc="left"), each.get_xlabel(), each.get_ylabel()) for each in panels]
    assert found == AXES[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_that_ran_is_in_the_legend(
    usual: dict[str, Figure], name: str, tmp_path: Path
):
    ours = "TNR (ours)"
    labels = ["SNR", "DNR", ours] if name == "several-hrps" else ["BID", "SNR", "DNR", ours]
    (legend,) = usual[name].legends
    assert [text.get_text() for text in legend.get_texts()] == labels
    write_figure(usual[name], [tmp_path / "a.svg"])
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {label} -->" in text for label in labels)


def test_markers_at_the_edge_of_a_panel_are_whole():
    at_zero = figures(lambda _point, _algorithm: {"subscription_ims": 0})["figure-9"].axes[0]
    assert at_zero.get_ylim()[0] == 0
    assert not any(each.get_clip_on() for each in at_zero.lines)


def test_captions_name_the_figure():
    captions = {name: caption for name, (_, caption) in all_figures(measures()).items()}
    assert tuple(captions) == NAMES
    for number in (9, 10, 11):
        assert captions[f"figure-{number}"].startswith(f"Figure {number}: ")


def captions(change: Change) -> dict[str, str]:
    return {name: caption for name, (_, caption) in all_figures(measures(1, change)).items()}


def test_captions_say_which_lines_coincide_and_where():
    said = captions(lambda _point, _algorithm: {})
    assert "BID, SNR, DNR and TNR coincide in all panels: " in said["figure-9"]
    assert "SNR, DNR and TNR coincide in (a); DNR and TNR in (b): " in said["several-hrps"]


def test_captions_say_nothing_of_lines_that_can_be_told_apart():
    def change(_point, algorithm):
        return {
            "notification_delay_mean_ns": {BID: 2e6, DNR: 6e6, TNR: 4e6}.get(algorithm, 8e6),
            "notification_ims": {BID: 30_000, DNR: 20_010, TNR: 10_000}.get(algorithm, 20_000),
            "matching_delay_mean_ns": 1e5 if algorithm in {BID, TNR} else 9e5,
        }

    said = captions(change)
    assert (
        "BID, SNR, DNR and TNR coincide in (a) and (b); SNR and DNR in (d): one line lies on the "
        "other." in said["figure-9"]
    )
    assert (
        "BID and TNR coincide in (a) and (d); SNR and DNR in (a), (c) and (d)"
        in (said["figure-10"])
    )
    assert "coincide" not in said["several-hrps"]


def test_ticks_are_in_the_unit_of_the_axis():
    def change(point, _algorithm):
        return {
            "matching_delay_mean_ns": 1_000.0 * point.x,
            "subscription_ims": 500_000 * point.x,
        }

    found = figures(change)
    for figure in found.values():
        figure.draw_without_rendering()
        for panel in figure.axes:
            ticks = [label.get_text() for label in panel.get_yticklabels()]
            assert not any(each.endswith(("m", "µ")) for each in ticks), ticks
    assert "0.4" in [each.get_text() for each in found["figure-10"].axes[0].get_yticklabels()]
    assert "500M" in [each.get_text() for each in found["figure-9"].axes[0].get_yticklabels()]


def test_lines_are_means_over_the_seeds_in_the_unit_of_the_axis():
    def change(point, algorithm):
        slow = 2 if algorithm is BID else 1
        return {"notification_delay_mean_ns": slow * point.x * point.seed * 1e6}

    found = figures(change, seeds=3)
    panel = found["figure-9"].axes[2]
    assert line(panel, SNR) == [(x, pytest.approx(2 * x)) for x in (125, 250, 500, 1000)]
    assert line(panel, BID) == [(x, pytest.approx(4 * x)) for x in (125, 250, 500, 1000)]
    assert line(found["figure-10"].axes[1], DNR) == [
        (x, pytest.approx(2 * x)) for x in (20, 60, 100)
    ]


def test_band_goes_from_the_least_to_the_most_of_the_seeds():
    def change(point, _algorithm):
        return {"notification_ims": {1: 100, 2: 500, 3: 300}[point.seed]}

    panel = figures(change, seeds=3)["figure-9"].axes[3]
    assert len(panel.collections) == 4
    for band in panel.collections:
        heights = band.get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == (100, 500)


def test_one_seed_has_no_band(usual: dict[str, Figure]):
    assert not usual["figure-9"].axes[0].collections


def test_axes_begin_at_zero_and_show_every_point():
    def change(point, algorithm):
        return {"notification_ims": point.x * (3 if algorithm is BID else 1)}

    panel = figures(change)["figure-9"].axes[3]
    assert panel.get_ylim()[0] == 0
    assert panel.get_ylim()[1] > 3000
    assert panel.get_xlim()[0] == 0
    assert panel.get_xlim()[1] >= 1000


class TestFigure11:
    LATE = Series([10.0, 20.0, 30.0, 40.0], [5.0, 2.0, 0.1, 0.1])

    def test_series_are_shown_until_a_little_after_the_last_late_delivery(self):
        found = figures(lambda _point, _algorithm: {"series": self.LATE})["figure-11"]
        for panel in found.axes:
            assert panel.get_xlim() == (0, pytest.approx(1.15 * 20))
            assert line(panel, DNR) == [(10, 5), (20, 2)]

    def test_who_is_never_stable_is_shown_to_the_end(self):
        def change(point, algorithm):
            never = algorithm is BID and point.x == 60_000
            return {"series": Series([10.0, 90.0], [5.0, 5.0])} if never else {"series": self.LATE}

        found = figures(change)["figure-11"].axes[2]
        assert line(found, BID) == [(10, 5), (90, 5)]
        assert line(found, SNR)[-1] == (40, 0.1)

    def test_burst_that_nobody_notices_is_shown_whole(self):
        calm = Series([10.0, 20.0], [0.2, 0.3])
        found = figures(lambda _point, _algorithm: {"series": calm})["figure-11"]
        for panel in found.axes:
            assert panel.get_xlim()[1] >= 20
            assert line(panel, SNR) == [(10, 0.2), (20, 0.3)]

    def test_second_is_marked(self, usual: dict[str, Figure]):
        for panel in usual["figure-11"].axes:
            assert [1, 1] in [list(each.get_ydata()) for each in panel.lines]

    def test_it_is_of_the_first_seed(self):
        def change(point, _algorithm):
            return {"series": Series([1.0, 2.0 * point.seed], [5.0, 0.1])}

        panel = figures(change, seeds=2)["figure-11"].axes[0]
        assert line(panel, DNR) == [(1, 5)]


class TestSeveral:
    @staticmethod
    def change(dnr_alone: float, dnr_with_five: float) -> Change:
        def found(point, algorithm):
            several = point.experiment is Experiment.SEVERAL
            dnr = dnr_with_five if several else dnr_alone
            return {"notification_delay_mean_ns": 1e9 * (dnr if algorithm is DNR else 10)}

        return found

    def test_lead_and_delays_are_by_number_of_publishers(self):
        delay, lead = figures(self.change(5, 9))["several-hrps"].axes
        assert line(delay, SNR) == [(1, 10), (5, 10)]
        assert line(delay, DNR) == [(1, 5), (5, 9)]
        assert line(lead, DNR) == [(1, pytest.approx(50)), (5, pytest.approx(10))]
        assert list(lead.get_xticks()) == [1, 5]

    @pytest.mark.parametrize(("alone", "five"), [(5, 13), (12, 13), (10, 10)])
    def test_lead_that_is_none_or_lost_is_seen_as_well(self, alone: float, five: float):
        panel = figures(self.change(alone, five))["several-hrps"].axes[1]
        low, high = panel.get_ylim()
        assert low < high
        for _, value in line(panel, DNR):
            assert low <= value <= high
        assert low <= 0 <= high, "none at all is in sight"


def test_figures_are_drawn_without_the_sensitivity_table():
    paper = [each for each in measures().all if each.point.experiment is not Experiment.SENSITIVITY]
    assert tuple(all_figures(Measures(paper))) == NAMES
