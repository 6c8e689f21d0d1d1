from octopis.core.model.suggestion import did_you_mean


def test_nearest_word_is_suggested():
    assert did_you_mean("clustres", ["clusters", "vertices"]) == "; did you mean 'clusters'?"


def test_case_does_not_matter():
    assert did_you_mean("PAPER", ["Paper"]) == "; did you mean 'Paper'?"


def test_nothing_is_suggested_where_nothing_is_near():
    assert did_you_mean("zzz", ["clusters"]) == ""
    assert did_you_mean("zzz", []) == ""


def test_very_long_word_costs_little():
    assert did_you_mean("x" * 1_000_000, ["clusters"]) == ""
