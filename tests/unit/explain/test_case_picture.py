from octopis.explain.case_picture import paint_cases
from octopis.explain.cases import COLUMNS, rows


def test_all_words_of_the_table_stand_in_the_picture():
    words = [text.get_text().replace("\n", " ") for text in paint_cases().axes[0].texts]
    for word in (*COLUMNS, *(cell for row in rows() for cell in row)):
        assert word in words


def test_bits_of_the_sketches():
    words = [text.get_text() for text in paint_cases().axes[0].texts]
    assert [word for word in words if set(word) <= {"0", "1"}] == ["001", "101", "100"]
