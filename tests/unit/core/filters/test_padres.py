import pytest

from octopis.core.filters.padres import OPERATORS, parse_padres, print_padres
from octopis.core.filters.sql import parse_sql
from octopis.errors import InvalidFilter

MEANINGS = {
    "[a,eq,'x']": "a = 'x'",
    "[a,eq,5]": "a = 5",
    "[a,=,5]": "a = 5",
    "[a,neq,'x']": "a <> 'x'",
    "[a,<>,5]": "a <> 5",
    "[a,<,5]": "a < 5",
    "[a,>,5]": "a > 5",
    "[a,<=,5]": "a <= 5",
    "[a,>=,5]": "a >= 5",
    "[a,str-prefix,'x']": "a LIKE 'x%'",
    "[a,str-postfix,'x']": "a LIKE '%x'",
    "[a,str-contains,'x']": "a LIKE '%x%'",
    "[a,str-lt,'x']": "a < 'x'",
    "[a,str-le,'x']": "a <= 'x'",
    "[a,str-gt,'x']": "a > 'x'",
    "[a,str-ge,'x']": "a >= 'x'",
    "[a,isPresent,'x']": "a IS NOT NULL",
}


@pytest.mark.parametrize("text", MEANINGS)
def test_each_operator_means_its_sql(text: str):
    assert parse_padres(text) == parse_sql(MEANINGS[text])


def test_every_operator_is_in_the_table_above():
    assert {text.split(",")[1] for text in MEANINGS} == set(OPERATORS)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("[class,eq,'STOCK'],[price,>,20]", "class = 'STOCK' AND price > 20"),
        ("[price,>,20],[price,<=,30]", "price > 20 AND price <= 30"),
        ("[price,>,20],[price,<>,25]", "price > 20 AND price <> 25"),
        (" [ a , = , -1.5e1 ] ,\n[b,=,+2]", "a = -15 AND b = 2"),
        ("[a,eq,true],[b,eq,FALSE]", "a = TRUE AND b = FALSE"),
        ('[a,eq,"x""y"]', "a = 'x\"y'"),
        ("[a,eq,'it''s']", "a = 'it''s'"),
        ("[a,str-contains,'50%_']", "a LIKE '%50!%!_%' ESCAPE '!'"),
        ("[a,str-contains,'']", "a LIKE '%'"),
        ("[a-b,=,1],[\"or\",=,2],[true,=,3],[eq,=,4]",
         '"a-b" = 1 AND "or" = 2 AND "true" = 3 AND eq = 4'),
        ("[a,isPresent,5]", "a IS NOT NULL"),
        ("[class,eq,STOCK],[symbol,eq,YHOO],[price,>,10];",
         "class = 'STOCK' AND symbol = 'YHOO' AND price > 10"),
        ("[a,eq,'x'] ;\n", "a = 'x'"),
        ("[a,eq,BRK-B.2],[b,str-prefix,$x_1],[c,isPresent,any]",
         "a = 'BRK-B.2' AND b LIKE '$x!_1%' ESCAPE '!' AND c IS NOT NULL"),
        ("[eq,eq,eq],[a,=,trueish],[b,neq,isPresent]",
         "eq = 'eq' AND a = 'trueish' AND b <> 'isPresent'"),
        ("[a,eq,true],[b,eq,'true']", "a = TRUE AND b = 'true'"),
    ],
)  # fmt: skip
def test_predicates_must_all_hold(text: str, sql: str):
    assert parse_padres(text) == parse_sql(sql)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a,str-ge1,'x']", "unknown operator 'str-ge1' at column 4; did you mean 'str-ge'?"),
        ("[b,=,1],[a,EQ,1]", "unknown operator 'EQ' at column 12; did you mean 'eq'?"),
        ("[a,ispresent,1]", "unknown operator 'ispresent' at column 4; did you mean 'isPresent'?"),
        ("[a,between,1]", "unknown operator 'between' at column 4"),
        ("[a,str-prefix,5]", "str-prefix needs text in quotes, not 5 at column 4"),
        ("[a,str-lt,true]", "str-lt needs text in quotes, not True at column 4"),
        ("[a,<,true]", "booleans have no order: '<' cannot compare them at column 4"),
        ("[a,=,9223372036854775808]", "the integer 9223372036854775808 does not fit in 64 bits"),
        ("[a,=,1e999]", "inf is not a number that can be compared at column 4"),
        ('["",=,1]', "an attribute's name is text of 1 to 255 characters at column 2"),
        ("[a,eq,1", "expected ']' after '1' at column 8, where the filter ends"),
        ("a = 1", "expected '[' at column 1, not 'a'"),
        ("[a,eq]", "expected ',' after 'eq' at column 6, not ']'"),
        ("[a,=,]", "expected a number or text in quotes after ',' at column 6, not ']'"),
        ("[a,=,I BM]", "expected ']' after 'I' at column 8, not 'BM'"),
        ("[a,=,3M]", "expected ']' after '3' at column 7, not 'M'"),
        ("[a,=,1];;", "expected the end after ';' at column 9, not ';'"),
        ("[a,=,1];[b,=,2]", "expected the end after ';' at column 9, not '['"),
        (";", "expected '[' at column 1, not ';'"),
        ("[a,=,1][b,=,2]", "expected ',' or the end after ']' at column 8, not '['"),
        ("[a,=,1],", "expected '[' after ',' at column 9, where the filter ends"),
        ("[a,=,'x]", "the text that starts here has no closing quote at column 6"),
        ("", "the filter is empty; write TRUE to match everything"),
    ],
)  # fmt: skip
def test_fault_is_named_with_its_place(text: str, message: str):
    with pytest.raises(InvalidFilter) as caught:
        parse_padres(text)
    found = str(caught.value)
    assert found == message or (message.endswith("bits") and found.startswith(message))


@pytest.mark.parametrize(
    ("sql", "printed"),
    [
        ("a = 5 AND b = 'x'", "[a,=,5],[b,eq,'x']"),
        ("a <> 5 AND b <> 'x'", "[a,<>,5],[b,neq,'x']"),
        ("a = TRUE", "[a,eq,true]"),
        ("a > 1 AND a <= 5", "[a,>,1],[a,<=,5]"),
        ("a > 1 AND a NOT IN (3, 4)", "[a,>,1],[a,<>,3],[a,<>,4]"),
        ("a >= 'x'", "[a,str-ge,'x']"),
        ("a = ''", "[a,eq,'']"),
        ("a LIKE 'x%'", "[a,str-prefix,'x']"),
        ("a LIKE '%x'", "[a,str-postfix,'x']"),
        ("a LIKE '%it''s%'", "[a,str-contains,'it''s']"),
        ("a LIKE '%'", "[a,str-prefix,'']"),
        ("a NOT IN (1, 2)", "[a,<>,1],[a,<>,2]"),
        ("a < 3 AND a > 5", "[a,<,0],[a,>,0]"),
        ("a < ''", "[a,str-lt,'']"),
        ("a AND NOT a", "[a,eq,true],[a,eq,false]"),
        ("a IS NOT NULL", "[a,isPresent,'']"),
        ('"last price" > 1', '["last price",>,1]'),
    ],
)
def test_conjunction_prints_as_predicates_that_parse_to_it(sql: str, printed: str):
    assert print_padres(parse_sql(sql)) == printed
    assert parse_padres(printed) == parse_sql(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "a = 1 OR b = 2",
        "a IN (1, 2)",
        "a < 1 OR a > 2",
        "a <= 0 OR a > 0",
        "a IN (TRUE, FALSE)",
        "a IS NULL",
        "a NOT LIKE '%x'",
        "a NOT LIKE 'x%'",
        "a LIKE '_x'",
        "a LIKE '%x%y%'",
        "a > b",
        "a + 1 > 2",
        "TRUE",
        "FALSE",
        " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(10)),
    ],
)
def test_what_the_dialect_cannot_say_is_refused(sql: str):
    with pytest.raises(InvalidFilter, match="the padres dialect"):
        print_padres(parse_sql(sql))
