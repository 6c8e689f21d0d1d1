import json

import pytest


def test_matching_measures_every_structure_in_one_run(octopis):
    status, printed, _ = octopis("bench", "matching", "--sizes", "300", "--json")
    assert status == 0
    found = json.loads(printed)
    assert {figure["structure"] for figure in found["figures"]} == {
        "index",
        "linear oracle",
        "numpy brute force",
    }
    assert all(figure["value"] > 0 for figure in found["figures"])
    assert "cores" in found["machine"]


def test_routing_measures_snr_and_dnr(octopis):
    status, printed, _ = octopis("bench", "routing", "--subscriptions", "300", "--json")
    assert status == 0
    figures = json.loads(printed)["figures"]
    assert {figure["algorithm"] for figure in figures} == {"snr", "dnr"}
    assert all(figure["notifications_per_s"] > 0 for figure in figures)


def test_tables_name_the_machine(octopis):
    _, printed, _ = octopis("bench", "matching", "--sizes", "100")
    assert "cores" in printed


@pytest.mark.parametrize("sizes", ["", "ten", "0", "10,-1"])
def test_sizes_that_make_no_sense_are_refused(octopis, sizes: str):
    status, _, error = octopis("bench", "matching", "--sizes", sizes)
    assert status == 2
    assert "--sizes takes numbers" in error
