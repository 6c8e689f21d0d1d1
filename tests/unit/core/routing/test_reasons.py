import pytest

from octopis.core.routing import Reason


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_can_be_said_in_words(reason: Reason):
    assert reason.in_words


def test_no_two_reasons_share_their_words():
    assert len({reason.in_words for reason in Reason}) == len(Reason)
    assert len({hash(reason) for reason in Reason}) == len(Reason)
