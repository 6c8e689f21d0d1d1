"""The page of a report: one file, with everything in it, and nothing of the text taken for HTML."""

from base64 import b64encode
from html.parser import HTMLParser

from octopis.report.page import Page


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
    page.table(["<th>"], [["<td>", ("good", "<u>")]], "<caption>")

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
