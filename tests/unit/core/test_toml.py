import tomllib
from enum import Enum
from typing import Annotated

import pytest
from msgspec import Meta, Struct

from octopis.core.toml import bounds, check, decode, described, encode_table, encode_text
from octopis.errors import InvalidConfiguration


class Inner(Struct):
    count: int = 0
    colour: str = ""


class Outer(Struct):
    inner: Inner
    name: str = ""


class Bounded(Struct, frozen=True):
    ratio: Annotated[float, Meta(ge=0.5, lt=1e6, description="a part of the whole")] = 1
    size: Annotated[int, Meta(gt=0)] | None = None
    port: Annotated[int, Meta(ge=0, le=65_535)] = 0
    both: int = 0

    def __post_init__(self) -> None:
        if self.both > self.port:
            raise InvalidConfiguration("both is above port")


class Many(Struct):
    one: Bounded = Bounded()
    some: tuple[Bounded, ...] = ()
    named: dict[str, Bounded] = {}


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[one]\nratio = 0.4", "one.ratio must be 0.5 or more and below 1e6, not 0.4"),
        ("[one]\nratio = 1_000_000", "one.ratio must be 0.5 or more and below 1e6, not 1000000"),
        ("[one]\nratio = nan", "one.ratio must be 0.5 or more and below 1e6, not nan"),
        ("[one]\nsize = 0", "one.size must be above 0, not 0"),
        ("[one]\nport = 65536", "one.port must be between 0 and 65535, not 65536"),
        ("[[some]]\n[[some]]\nsize = -1", "some[1].size must be above 0, not -1"),
        ('[named."a b"]\nsize = -1', 'named."a b".size must be above 0, not -1'),
        ("[one]\nboth = 1", "one: both is above port"),
        ("[[some]]\nboth = 1", "some[0]: both is above port"),
    ],
)
def test_value_out_of_its_bounds_is_refused_with_place_value_and_bounds(text: str, said: str):
    with pytest.raises(InvalidConfiguration) as caught:
        decode(text, Many, "x.toml")
    assert str(caught.value) == f"x.toml: {said}"


def test_values_at_their_bounds_are_taken():
    found = decode("[one]\nratio = 0.5\nsize = 1\nport = 65535", Many, "x.toml").one
    assert (found.ratio, found.size, found.port) == (0.5, 1, 65_535)


def test_settings_that_were_made_in_python_are_checked_alike():
    check(Bounded(size=None), "here")
    with pytest.raises(InvalidConfiguration, match=r"here\.size must be above 0, not -3"):
        check(Bounded(size=-3), "here")


def test_bounds_and_meaning_can_be_asked_for():
    assert bounds(Annotated[int, Meta(le=3)]) == "at most 3"
    assert bounds(int) == ""
    assert described(Bounded, "ratio") == "a part of the whole"


def test_written_table_reads_back():
    class Colour(Enum):
        RED = "red"

    values = {
        "text": 'a "b"',
        "yes": True,
        "none": None,
        "number": 2.5,
        "colour": Colour.RED,
        "flat": ["x", "y"],
        "nested": [("x", "y"), ("z", "w")],
    }
    text = encode_table("one", values, {"": "a comment", "yes": "another"})
    assert text.startswith("[one]  # a comment\n")
    assert "yes = true  # another\n" in text
    assert tomllib.loads(text)["one"] == {
        "text": 'a "b"',
        "yes": True,
        "number": 2.5,
        "colour": "red",
        "flat": ["x", "y"],
        "nested": [["x", "y"], ["z", "w"]],
    }
