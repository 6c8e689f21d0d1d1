import io
import json
import sys


def test_check_prints_the_normal_form(octopis):
    status, printed, error = octopis("filter", "check", "NOT (price <= 50 OR x <> 'a')")
    assert (status, error) == (0, "")
    assert "price > 50 AND x = 'a'" in printed


def test_check_as_json(octopis):
    _, printed, _ = octopis("filter", "check", "a = 1 OR b = 2", "--json")
    assert json.loads(printed) == {
        "filter": "a = 1 OR b = 2",
        "terms": 2,
        "conjunctions": 2,
        "warnings": [],
    }


def test_check_warns_of_what_is_right_and_seldom_meant(octopis):
    asked = 'symbol = "IBM" AND sent > CURRENT_TIMESTAMP AND my-prop > 1'
    status, printed, error = octopis("filter", "check", asked)
    assert (status, error) == (0, "")
    said = [line for line in printed.splitlines() if line.startswith("warning: ")]
    assert [line.split()[1] for line in said] == ["symbol", "CURRENT_TIMESTAMP", "my-prop"]
    status, printed, _ = octopis("filter", "check", asked, "--json")
    assert status == 0
    assert [f"warning: {warning}" for warning in json.loads(printed)["warnings"]] == said


def test_check_warns_of_a_filter_that_is_never_true_in_any_dialect(octopis):
    for words in (("a > 5 AND a < 3",), ("[a,>,5],[a,<,3]", "--dialect", "padres")):
        status, printed, _ = octopis("filter", "check", *words)
        assert status == 0
        assert "warning: the filter can never be TRUE" in printed


def test_check_says_when_or_spreads_too_far(octopis):
    wide = " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(7))
    _, printed, _ = octopis("filter", "check", wide)
    assert "evaluated term by term" in printed
    assert json.loads(octopis("filter", "check", wide, "--json")[1])["conjunctions"] is None
    flat = " OR ".join(f"a{n} = 1" for n in range(150))
    assert json.loads(octopis("filter", "check", flat, "--json")[1])["conjunctions"] == 150


def test_check_reads_standard_input(octopis, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO('price > 5 AND a = "b"\n'))
    status, printed, _ = octopis("filter", "check", "-")
    assert status == 0
    assert "price > 5" in printed
    assert 'warning: a = "b" compares two attributes' in printed


def test_bad_filter_is_one_sentence_with_its_place(octopis):
    status, printed, error = octopis("filter", "check", "price BETWEN 1 AND 2")
    assert (status, printed) == (2, "")
    assert "at column 7" in error
    assert "did you mean 'BETWEEN'?" in error
    assert error.count("\n") == 1


def test_unknown_dialect_is_refused_with_a_suggestion(octopis):
    status, _, error = octopis("filter", "check", "[a,=,1]", "--dialect", "padre")
    assert status == 2
    assert "did you mean 'padres'?" in error


def test_explain_says_why_not(octopis):
    status, printed, _ = octopis("filter", "explain", "price > 50 AND symbol = 'IBM'", "price=60")
    assert status == 0
    assert "symbol is absent" in printed
    assert printed.rstrip().endswith("does not match")


def test_explain_as_json_takes_a_json_notification(octopis):
    _, printed, _ = octopis("filter", "explain", "price > 50", '{"price": 60}', "--json")
    found = json.loads(printed)
    assert found["matches"] is True
    assert found["explanation"]["reason"] == "price is 60"


def test_bad_attribute_is_refused(octopis):
    status, _, error = octopis("filter", "explain", "price > 50", "price")
    assert status == 2
    assert "name=value" in error


def test_covers_answers_both_ways(octopis):
    assert octopis("filter", "covers", "x > 1", "x > 2")[1] == "yes\n"
    assert octopis("filter", "covers", "x > 2", "x > 1")[1] == "no, or not provably\n"
    _, printed, _ = octopis("filter", "covers", "x > 1", "x > 2", "--json")
    assert json.loads(printed) == {"covers": True}


def test_convert_both_ways(octopis):
    _, brackets, _ = octopis("filter", "convert", "price > 5 AND s LIKE 'I%'", "--to", "padres")
    assert brackets == "[price,>,5],[s,str-prefix,'I']\n"
    _, sql, _ = octopis("filter", "convert", brackets.strip(), "--dialect", "padres", "--to", "sql")
    assert sql == "price > 5 AND s LIKE 'I%'\n"


def test_convert_says_what_the_dialect_cannot_say(octopis):
    status, _, error = octopis("filter", "convert", "a = 1 OR b = 2", "--to", "padres")
    assert status == 2
    assert "has no OR" in error
