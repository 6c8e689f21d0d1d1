import logging

from octopis.logs import without_warnings


def test_logger_keeps_warnings_to_itself_for_a_while(caplog):
    log = logging.getLogger("octopis.example")
    with without_warnings("octopis.example"):
        log.warning("on purpose")
        log.error("not on purpose")
    log.warning("later")
    assert [record.message for record in caplog.records] == ["not on purpose", "later"]
