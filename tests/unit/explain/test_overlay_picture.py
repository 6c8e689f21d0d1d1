from io import BytesIO

import pytest
from matplotlib.patches import Ellipse, PathPatch, Rectangle

from octopis.core.topology.catalogue import from_catalogue
from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.core.topology.planner import grow
from octopis.core.topology.scot import SCOT
from octopis.explain.layout import lay_out
from octopis.explain.overlay_picture import Canvas, curve_path, paint

SCOT_3 = from_catalogue("figure-3").scot


@pytest.fixture(scope="module")
def canvas() -> Canvas:
    return paint(SCOT_3, lay_out(SCOT_3), "A title")


def texts(canvas: Canvas) -> list[str]:
    return [text.get_text() for text in canvas.axes.texts]


def test_every_broker_region_and_cluster_is_labelled(canvas: Canvas):
    shown = texts(canvas)
    assert all(broker.short in shown for broker in SCOT_3.brokers)
    assert all(f"$R_{{{region}}}$" in shown for region in SCOT_3.regions)
    assert all(f"$C_{{{cluster}}}$" in shown for cluster in SCOT_3.clusters)
    assert "A title" in shown


def test_long_title_is_written_smaller_to_fit():
    sizes = {}
    for length in (20, 90):
        canvas = paint(SCOT_3, lay_out(SCOT_3), "t" * length)
        (title,) = [text for text in canvas.axes.texts if text.get_text() == "t" * length]
        sizes[length] = title.get_fontsize()
    assert sizes[20] == 15
    assert 8 < sizes[90] < 15


def test_kinds_of_brokers_differ_in_shape_and_in_fill(canvas: Canvas):
    inner = [patch for patch in canvas.axes.patches if isinstance(patch, Ellipse)]
    bands = len(SCOT_3.clusters)
    edge = [patch for patch in canvas.axes.patches if isinstance(patch, Rectangle)][bands:]
    assert (len(inner), len(edge)) == (6, 12)
    assert inner[0].get_facecolor() != edge[0].get_facecolor()


def test_acols_are_solid_and_icols_are_dashed(canvas: Canvas):
    links = [patch for patch in canvas.axes.patches if isinstance(patch, PathPatch)]
    solid = [link for link in links if link.get_linestyle() in {"-", "solid"}]
    assert (len(links), len(solid)) == (33, 15)


def test_legend_names_both_kinds_of_links_and_of_brokers(canvas: Canvas):
    legend = canvas.axes.get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert words == [
        "aCOL (within a cluster)",
        "iCOL (between clusters)",
        "inner broker",
        "edge broker",
    ]


def test_one_unit_of_the_axes_is_one_inch(canvas: Canvas):
    width, height = canvas.figure.get_size_inches()
    left, right = canvas.axes.get_xlim()
    bottom, top = canvas.axes.get_ylim()
    assert (right - left, top - bottom) == pytest.approx((width, height))


def test_curve_becomes_a_path_with_its_ends():
    curve = ((0.0, 0.0), (1.0, 1.0), (2.0, 1.0), (3.0, 0.0))
    path = curve_path(curve)
    assert path.vertices[0].tolist() == [0.0, 0.0]
    assert path.vertices[-1].tolist() == [3.0, 0.0]


def test_brokers_are_large_enough_for_their_labels():
    for name in ("figure-3", "paper"):
        scot = from_catalogue(name).scot
        layout = lay_out(scot)
        canvas = paint(scot, layout, name)
        canvas.figure.draw_without_rendering()
        labels = {broker.short for broker in scot.brokers}
        for text in canvas.axes.texts:
            if text.get_text() in labels:
                assert text.get_window_extent().width / canvas.figure.dpi < layout.broker_width


def test_labels_with_signs_of_mathematics_are_drawn_as_they_are():
    tree = AcyclicFactor.from_edges([("$x_{", "a^b"), ("a^b", "50%")])
    scot = SCOT(tree, ConnectivityFactor.complete(2))
    canvas = paint(scot, lay_out(scot), "costs $5 and $6")
    canvas.figure.savefig(BytesIO(), format="png")
    assert r"R \$x_{" in texts(canvas)


def test_wide_overlay_says_where_links_go_on():
    scot = grow(200, 4)
    canvas = paint(scot, lay_out(scot, wraps=True), "wide")
    width, height = canvas.figure.get_size_inches()
    assert max(width, height) < 30
    shown = texts(canvas)
    assert all(broker.short in shown for broker in scot.brokers)
    assert sum(each.startswith("An aCOL that leaves on the right goes on below") for each in shown)
    links = [patch for patch in canvas.axes.patches if isinstance(patch, PathPatch)]
    assert len(links) == len(scot.acols) + len(scot.icols)
    regions = {*scot.regions}
    led = [each for each in shown if each in regions]
    pieces = [each for (one, _), each in canvas.layout.ties.items() if one.cluster == 0]
    assert len(led) == sum(2 * (len(each) - 1) for each in pieces)
