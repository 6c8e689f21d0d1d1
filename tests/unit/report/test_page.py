"""The page of a report: one file, with everything in it, and nothing of the text taken for HTML."""

import re
from base64 import b64encode
from html.parser import HTMLParser

from octopis.report.page import Link, Page


class Reader(HTMLParser):
    """Collects what a browser would fetch, show and jump to."""

    def __init__(self):
        super().__init__()
        self.fetched, self.targets, self.links, self.open = [], [], [], []
        self.words = ""

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        if tag not in {"meta", "img"}:
            self.open.append(tag)
        self.fetched += [facts[name] for name in ("src",) if name in facts]
        self.fetched += [facts["href"]] if tag == "link" else []
        self.targets += [facts["id"]] if "id" in facts else []
        self.links += [facts["href"]] if tag == "a" else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def read(page):
    reader = Reader()
    reader.feed(page.text())
    assert not reader.open
    return reader


def test_text_is_never_taken_for_html():
    page = Page("a < b & c", "<script>alert(1)</script>")
    page.section("<b>")
    page.paragraph("x <i> y")
    page.table(["<th>", "other"], [["<td>", ("good", "<u>")]], "<caption>")

    words = read(page).words

    for text in ("a < b & c", "<script>alert(1)</script>", "<b>", "x <i> y", "<td>", "<u>"):
        assert text in words


def test_pictures_become_part_of_the_page(tmp_path):
    picture = tmp_path / "queue.png"
    picture.write_bytes(b"\x89PNG and so on")
    page = Page("t")
    page.figure(picture, "Queue lengths")

    (address,) = read(page).fetched

    assert address == "data:image/png;base64," + b64encode(b"\x89PNG and so on").decode()


def test_contents_lead_to_every_section():
    page = Page("t")
    page.section("Claims")
    page.section("Figures")

    reader = read(page)

    assert reader.links == [f"#{target}" for target in reader.targets]
    assert len(reader.links) == 2


def test_numbers_stand_at_the_right_and_are_readable():
    page = Page("t")
    page.table(["n", "mean", "name"], [[1234567, 0.123456, "x"]])

    text = page.text()

    assert '<td class="number">1,234,567</td><td class="number">0.1235</td><td>x</td>' in text


def test_words_between_backticks_are_code_and_a_lonely_backtick_is_itself():
    page = Page("t")
    page.paragraph("run `octopis demo` now")
    page.paragraph("a ` b")

    assert "run <code>octopis demo</code> now" in page.text()
    assert "a ` b" in page.text()


SEVEN = [f"c{number}" for number in range(7)]


def test_no_column_of_a_wide_table_can_be_out_of_sight():
    page = Page("t")
    page.table(SEVEN, [range(7)], groups=[("", 1), ("left", 2), ("right", 4)])

    text = page.text()

    assert '<table class="wide">' in text
    assert '<th class="group" colspan="4">right</th>' in text
    # On a narrow screen each cell stands in a line of its own, and says what it is.
    assert '<td class="number" data-label="left c1">1</td>' in text
    assert '<td class="number" data-label="right c6">6</td>' in text
    assert "overflow" not in text, "what is scrolled away is not printed"
    for rule in re.findall(r"th[^{}]*{[^}]*}", text):
        assert "nowrap" not in rule or "td" in rule


def test_narrow_table_stays_one_everywhere():
    page = Page("t")
    page.table(["a", "b"], [[1, 2]])

    assert "data-label=" not in page.text().partition("<body>")[2]
    assert 'class="wide"' not in page.text()


def test_links_lead_to_paragraphs_and_to_files():
    page = Page("t")
    page.table(["why"], [[Link("[1]", "#reason-1")]])
    page.paragraph("Because.", anchor="reason-1")
    page.files("As a file:", [Link("a<b.csv", "tables/a.csv")])

    reader = read(page)

    assert reader.links == ["#reason-1", "tables/a.csv"]
    assert reader.targets == ["reason-1"]
    assert "a<b.csv" in reader.words


def test_long_names_may_break_at_underscores():
    page = Page("t")
    page.paragraph("`matching_us x 2`")

    assert "<code>matching_<wbr>us x 2</code>" in page.text()
