import logging
from pathlib import Path

import pytest

from octopis import logs
from octopis.logs import OneLine, one_line, without_warnings


def test_logger_keeps_warnings_to_itself_for_a_while(caplog):
    log = logging.getLogger("octopis.example")
    with without_warnings("octopis.example"):
        log.warning("on purpose")
        log.error("not on purpose")
    log.warning("later")
    assert [record.message for record in caplog.records] == ["not on purpose", "later"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain, and Zürich", "plain, and Zürich"),
        ("one\ntwo\r\n", "one\\ntwo\\r\\n"),
        ("\x1b[2J\x00", "\\x1b[2J\\x00"),
        ("a\u2028b\u202ec", "a\\u2028b\\u202ec"),
        ("\udc80", "\\udc80"),
    ],
)
def test_text_of_strangers_is_one_line_without_control_characters(said: str, shown: str):
    assert one_line(said) == shown


def test_message_is_one_line_in_the_log_and_a_traceback_stays_readable():
    record = logging.LogRecord("x", logging.ERROR, "x", 1, "bad: %s", ("a\nERROR b",), None)
    record.exc_text = "Traceback:\n  line"
    assert OneLine("%(levelname)s %(message)s").format(record) == (
        "ERROR bad: a\\nERROR b\nTraceback:\n  line"
    )


def test_every_process_logs_by_the_one_line_formatter():
    """What strangers say reaches logs of the gateway, too."""
    source = Path(logs.__file__).parent
    by_hand = [path for path in source.rglob("*.py") if "basicConfig" in path.read_text("utf-8")]
    assert by_hand == [Path(logs.__file__)]
