import inspect
import pickle

import pytest

from octopis import errors

EXAMPLES = [
    errors.OperationFailed("the disk is full"),
    errors.EmptyFactor("acyclic factor"),
    errors.UnknownVertex("z", "the edge 'a' - 'z'", "; did you mean 'y'?"),
    errors.SelfLoop("acyclic factor", "a"),
    errors.DoubledEdge("acyclic factor", ("a", "b")),
    errors.AmbiguousLabel("1", "a bare number"),
    errors.CycleFound(("a", "b", "c")),
    errors.NotConnected("a", ("d", "e")),
    errors.ConnectivityPropertyError((0, 1), 3),
    errors.IndexPropertyError(1.5, "not an integer"),
    errors.LabelOrderError("0,b", "cluster first"),
    errors.InvalidFilter("unexpected word", 3),
    errors.MissingExtra("sweep", "Spark", "pipeline"),
    errors.ProtocolError("an empty frame has no kind"),
    errors.ConnectionLost("the broker is gone", 3),
    errors.SparkUnavailable("there is no Java"),
    errors.SweepFailed(("a", "b"), 3, "the disk is full"),
    errors.DeliveriesWrong("trace", {"lost": 1}),
    errors.StoreFailed("data/b,2", "the disk is full"),
    errors.StoreLocked("data/b,2"),
    errors.StoreVersion("data/b,2", 2, 1),
    errors.StoreDamaged("data/b,2", "state.db is missing"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_error_crosses_process_borders_with_its_message_and_fields(error: errors.OctopisError):
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_what_the_user_gave_exits_2_and_a_failure_exits_1(error: errors.OctopisError):
    assert error.exit_status == (2 if isinstance(error, errors.InvalidInput) else 1)


def test_tree_in_the_docstring_names_every_error():
    names = [name for name, value in vars(errors).items() if inspect.isclass(value)]
    missing = [name for name in names if name not in (errors.__doc__ or "")]
    assert not missing


def test_a_long_list_of_unreached_vertices_is_cut_short():
    message = str(errors.NotConnected("a", tuple("bcdefghi")))
    assert "'b', 'c', 'd', 'e', 'f' and 3 more" in message
