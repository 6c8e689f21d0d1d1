"""Algorithms are told apart by label, colour, marker and line, in grey as well."""

import matplotlib as mpl
from matplotlib.colors import to_rgb

from octopis.core.routing import Algorithm
from octopis.report.style import LOOKS, RC


def test_every_algorithm_has_its_label():
    assert {algorithm: look.label for algorithm, look in LOOKS.items()} == {
        Algorithm.BID: "BID",
        Algorithm.SNR: "SNR",
        Algorithm.DNR: "DNR",
    }


def test_no_two_algorithms_share_a_look():
    for places in zip(*LOOKS.values(), strict=True):
        assert len(set(places)) == len(LOOKS)


def test_lines_are_dark_enough_to_be_read_on_white():
    """At least 3 to 1, as for anything that is not text."""

    def luminance(colour: str) -> float:
        parts = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for look in LOOKS.values():
        assert 1.05 / (luminance(look.colour) + 0.05) >= 3


def test_matplotlib_knows_every_setting():
    with mpl.rc_context(RC):
        assert mpl.rcParams["axes.grid"] is True
        assert mpl.rcParams["svg.hashsalt"] == "octopis"
