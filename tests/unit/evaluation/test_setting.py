"""What was run, as a reader wants to know it."""

import pyspark

from octopis.evaluation.experiments import EvaluationSize
from octopis.evaluation.setting import setting
from support.measures import request


def said(**changes) -> dict[str, str]:
    rows = setting(request(**changes))
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def test_full_size_is_said_in_the_papers_numbers():
    found = said(size=EvaluationSize.FULL, seeds=5)
    assert found["size, seeds"] == "full, seeds 1 to 5"
    assert found["subscriber scalability"] == (
        "500, 1,000, 2,000, 4,000, 6,000, 8,000, 10,000 subscribers; 100 publishers of 1,000 "
        "notifications, 60 a minute"
    )
    assert found["publisher scalability"] == (
        "100, 200, 300, 400, 500 publishers of 500, 100 a minute; 3,000 subscribers"
    )
    assert found["burst"] == (
        "5,000 subscribers; 100 publishers of 2,000, 60 a minute; a high-rate publisher of 100,000 "
        "at 100K, 80K, 60K a minute; tau 10, t_w 50 ms"
    )
    assert found["several high-rate publishers"] == "1, 2, 3, 5, at 100K"


def test_one_seed_is_said_as_one():
    assert said()["size, seeds"] == "quick, seed 1"


def test_quotes_are_named_without_their_folder():
    assert said()["quotes"] == "synthetic, seed 1"
    assert said(quotes=["/secret/a.csv", "/secret/b.txt"])["quotes"] == "a.csv, b.txt"


def test_versions_are_those_that_ran():
    assert said(version="7.8")["versions"].startswith(f"OctopiS 7.8, Spark {pyspark.__version__}, ")
