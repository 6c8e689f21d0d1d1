import pytest

from octopis import errors
from octopis.core.wire.frames import BodyDecoder, encode
from octopis.core.wire.refusals import Refusal


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidFilter("unexpected word", 3, "; did you mean AND?"),
        errors.InvalidFilter("nothing there"),
        errors.InvalidSubscription("is another's", "s1"),
        errors.InvalidNotification("no"),
        errors.ProtocolError("no"),
        errors.ConnectionLost("gone", 3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_arrives_as_the_same_class_with_its_message_and_fields(error: errors.OctopisError):
    crossed = BodyDecoder[Refusal](Refusal, "a refusal").decode(encode(Refusal.of(error)))
    found = crossed.as_error()
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)


@pytest.mark.parametrize("name", ["SomethingNewer", "restored", "__builtins__", ""])
def test_error_that_is_not_in_the_tree_is_an_operation_failed(name: str):
    found = Refusal(name, "what happened").as_error()
    assert type(found) is errors.OperationFailed
    assert str(found) == "what happened"


def test_fields_that_are_no_plain_values_stay_behind():
    refusal = Refusal.of(errors.CycleFound(("a", "b", "c")))
    assert refusal.fields == {}
    assert "a - b - c - a" in str(refusal.as_error())
