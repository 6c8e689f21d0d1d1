from octopis.core.routing import Algorithm
from octopis.core.routing.dnr import CASES
from octopis.explain.case_picture import _question, paint_cases
from octopis.explain.case_table import COLUMNS, rows
from octopis.explain.explainer import explain


def test_all_words_of_the_table_stand_in_the_picture():
    words = [text.get_text().replace("\n", " ") for text in paint_cases().axes[0].texts]
    for word in (*COLUMNS, *(cell for row in rows() for cell in row)):
        assert word in words


def test_sketch_of_each_row_shows_that_case_and_no_other():
    for case in CASES:
        taken = explain(_question(case), Algorithm.DNR)
        first = {hop.reason for hop in taken.hops if hop.after is None}
        assert case.reason in first
        assert first <= {case.reason, CASES[0].reason}


def test_bits_of_the_sketches():
    words = [text.get_text() for text in paint_cases().axes[0].texts]
    assert [word for word in words if set(word) <= {"0", "1"}] == ["001", "101", "100"]
