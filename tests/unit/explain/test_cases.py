from pathlib import Path

import pytest

from octopis.core.routing import Algorithm
from octopis.core.routing.algorithms.dnr import CASES, Case
from octopis.explain.cases import COLUMNS, question_for, rows
from octopis.explain.explainer import explain

PAGE = Path(__file__).parents[3] / "docs" / "routing.md"


def test_each_case_has_a_row_of_all_columns():
    assert [row[0] for row in rows()] == [case.name for case in CASES]
    assert all(len(row) == len(COLUMNS) for row in rows())


def test_answers_are_yes_no_and_a_dash_where_it_does_not_matter():
    answers = {row[0]: row[1:4] for row in rows()}
    assert answers["static"] == ("no", "-", "-")
    assert answers["II"] == ("yes", "no", "yes")


def test_page_on_routing_has_the_same_table():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    shown = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    start = shown.index(COLUMNS)
    assert shown[start + 2 : start + 2 + len(CASES)] == rows()
    assert not lines[start + 2 + len(CASES)].startswith("|")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_question_for_a_case_is_answered_by_that_case_and_no_other(case: Case):
    taken = explain(question_for(case), Algorithm.DNR)
    first = {hop.reason for hop in taken.hops if hop.after is None}
    assert case.reason in first
    assert first <= {case.reason, CASES[0].reason}
