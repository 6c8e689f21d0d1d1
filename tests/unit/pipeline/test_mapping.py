import pytest

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.mapping import (
    Kind,
    load_mapping,
    mapping_of,
    parse_mapping,
    quotes_mapping,
)
from octopis.pipeline.ingest.rules import typed_rules
from octopis.scenario.clients import QUOTE

NUMBER = '[attributes.x]\ntype = "number"\n'


def test_quotes_are_a_mapping_with_the_ten_attributes():
    rules = typed_rules(quotes_mapping())
    assert rules.schema.names == [
        *("symbol", "date", "open", "high", "low", "close", "volume"),
        *("change_percent", "range_percent", "traded_value"),
    ]
    assert {field.name: field.type for field in rules.schema} == QUOTE


def test_option_names_columns_with_other_names_and_types():
    found = mapping_of("at:time, id=device.id ,temp = t:number").attributes
    assert list(found) == ["at", "id", "temp"]
    assert [each.column for each in found.values()] == ["", "device.id", "t"]
    assert [each.type for each in found.values()] == [Kind.TIME, None, Kind.NUMBER]
    assert mapping_of("*").rest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("a:nubmer", "there is no type 'nubmer'; did you mean 'number'"),
        ("a,a=b", "'a' is there twice"),
        ("a,,b", "names no column"),
        ("_row_file", "are ours"),
        (",".join(f"a{number}" for number in range(65)), "has 65 attributes"),
    ],
)
def test_option_that_makes_no_sense_is_refused(words: str, said: str):
    with pytest.raises(InvalidConfiguration, match=said):
        mapping_of(words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nam = 'x'\n" + NUMBER, "unknown key 'nam'; did you mean 'name'"),
        (
            "[attributes.x]\ntyp = 'text'",
            r"'attributes.\"x\".typ'; did you mean 'type'",
        ),
        ("[attributes.x]\ntype = 'tex'", "type: invalid enum value 'tex'"),
        ("name = 'a b'\n" + NUMBER, "name must be a plain word"),
        ("", "names no attribute"),
        ("leave_out = ['a']\n" + NUMBER, "leave_out goes with rest = true"),
        ("key = ['y']\n" + NUMBER, "key names 'y', no attribute"),
        ("key = ['y']\n" + NUMBER + "[attributes.y]\nderive = 'x'", "which is derived"),
        ("[attributes.x]\ncolumn = 'a'\nderive = 'b'", "give one of column, derive and change_of"),
        ("[attributes.x]\ntype = 'text'\nmin = 1", "min and max go with the type number"),
        (NUMBER + "[attributes.y]\nchange_of = 'xx'", "change_of names 'xx', no attribute"),
        (NUMBER + "[attributes.y]\nchange_of = 'x'", "change_of needs a key of two"),
        ("[attributes.x]\nmax_length = 70000", "max_length must be between 1 and 65535"),
    ],
)
def test_mapping_that_makes_no_sense_is_refused(text: str, said: str):
    with pytest.raises(InvalidConfiguration, match=said):
        parse_mapping(text, "m.toml")


def test_mapping_is_found_by_its_file_and_quotes_by_their_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.toml").write_text(NUMBER, encoding="utf-8")
    assert list(load_mapping(tmp_path / "m.toml").attributes) == ["x"]
    assert load_mapping(tmp_path.joinpath("quotes").relative_to(tmp_path)) == quotes_mapping()
    with pytest.raises(InvalidConfiguration, match="there is no mapping"):
        load_mapping(tmp_path / "gone.toml")
