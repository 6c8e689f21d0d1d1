import tomllib

import pytest
from msgspec import Struct

from octopis.core.toml import decode, encode_text
from octopis.errors import InvalidConfiguration


class Inner(Struct):
    count: int = 0
    colour: str = ""


class Outer(Struct):
    inner: Inner
    name: str = ""


def refusal(text: str) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        decode(text, Outer, "x.toml")
    return str(caught.value)


def test_text_becomes_typed_values():
    assert decode("name = 'n'\n[inner]\ncount = 3", Outer, "x.toml") == Outer(Inner(3), "n")


def test_bad_syntax_is_refused_with_its_line():
    message = refusal("name = 'n'\ncount = [1,,2]\n")
    assert message.startswith("x.toml is not valid TOML: ")
    assert "at line 2, column 12" in message


def test_bad_syntax_at_the_end_is_refused_with_its_line():
    assert "at line 2, the end of the document" in refusal("name = 'n'\n[inner")


def test_number_beyond_all_measure_is_refused():
    assert "is not valid TOML" in refusal("name = " + "1" * 5_000)


def test_nesting_beyond_all_measure_is_refused():
    assert refusal("name = " + "[" * 5_000) == "x.toml is nested too deeply"


def test_unknown_table_is_refused_with_the_nearest():
    assert refusal("[iner]\n") == "x.toml: unknown key 'iner'; did you mean 'inner'?"


def test_unknown_key_is_refused_with_its_place_and_the_nearest():
    message = "x.toml: unknown key 'inner.color'; did you mean 'colour'?"
    assert refusal("[inner]\ncolor = 'red'") == message


def test_key_like_no_other_is_refused_with_all_keys():
    assert (
        refusal("[inner]\nzzz = 1") == "x.toml: unknown key 'inner.zzz'; known here: count, colour"
    )


def test_wrong_type_is_refused_with_its_place():
    assert refusal("[inner]\ncount = '3'") == "x.toml: inner.count: expected 'int', got 'str'"


def test_value_where_a_table_belongs_is_refused():
    assert refusal("inner = 3") == "x.toml: inner: expected 'object', got 'int'"


def test_missing_table_is_refused():
    assert refusal("name = 'n'") == "x.toml: object missing required field 'inner'"


@pytest.mark.parametrize("text", ["plain", 'quote " and \\', "tab\t\x7f\x00", "é 東 😀"])
def test_encoded_text_reads_back(text: str):
    assert tomllib.loads(f"key = {encode_text(text)}") == {"key": text}
