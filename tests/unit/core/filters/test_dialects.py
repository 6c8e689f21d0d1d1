import subprocess
import sys
from typing import Any

import pytest

from octopis.core.filters import DIALECTS, attr, parse_filter, print_filter
from octopis.errors import InvalidConfiguration, InvalidFilter


def test_dialects_are_known_by_name():
    assert DIALECTS == ("sql", "padres")
    wanted = attr("a") > 5
    assert parse_filter("a > 5") == parse_filter("[a,>,5]", "padres") == wanted
    assert print_filter(wanted) == "a > 5"
    assert print_filter(wanted, "padres") == "[a,>,5]"


def test_text_seen_before_is_not_read_again():
    assert parse_filter("a = 123456") is parse_filter("a = 123456")


def test_same_text_in_another_dialect_is_read_in_that_one():
    assert parse_filter("a = 77") == (attr("a") == 77)
    with pytest.raises(InvalidFilter):
        parse_filter("a = 77", "padres")


def test_unknown_dialect_is_refused_with_the_nearest():
    for ask in (
        lambda: parse_filter("a = 1", "padre"),
        lambda: print_filter(attr("a") == 1, "padre"),
    ):
        with pytest.raises(InvalidConfiguration) as caught:
            ask()
        assert str(caught.value) == (
            "there is no filter dialect 'padre', only sql and padres; did you mean 'padres'?"
        )


def test_lark_is_loaded_with_the_first_text_and_numpy_never():
    code = """
import sys
from octopis.core.filters import Filter, attr, parse_filter, print_filter
print_filter((attr("a") > 1) & attr("b").startswith("x"))
assert not {"lark", "numpy"} & set(sys.modules)
parse_filter("a > 1")
assert "lark" in sys.modules and "numpy" not in sys.modules
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("text", [["a"], {"a": 1}, None, 5, b"a = 1"])
def test_filter_that_is_no_text_is_refused(text: Any):
    for dialect in DIALECTS:
        with pytest.raises(InvalidFilter, match="a filter is text, not"):
            parse_filter(text, dialect)


@pytest.mark.parametrize("dialect", [None, 5, ["sql"], True])
def test_dialect_that_is_no_text_is_refused(dialect: Any):
    with pytest.raises(InvalidConfiguration, match="there is no filter dialect"):
        parse_filter("a = 1", dialect)
