import msgspec
import pytest

from octopis.core.routing import Answer, Deliver, Enqueue
from support.overlays import A0, ONE


@pytest.mark.parametrize(
    "effect", [Enqueue(A0, [], []), Deliver("client", ONE, ["s"]), Answer("client", 1)]
)
def test_effects_do_not_change(effect: msgspec.Struct):
    with pytest.raises(AttributeError):
        setattr(effect, effect.__struct_fields__[0], None)


def test_answer_without_error_means_accepted():
    assert Answer("client", 1).error is None
