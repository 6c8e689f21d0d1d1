from octopis.core.routing import Answer


def test_answer_without_error_means_accepted():
    assert Answer("client", 1).error is None
