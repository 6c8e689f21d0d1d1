import pytest

from octopis.core.model import BrokerId
from octopis.core.model.broker_id import check_region_label
from octopis.errors import AmbiguousLabel, LabelOrderError


@pytest.mark.parametrize("text", ["b,2", "B(b,2)", "B(b, 2)", "  B ( b , 2 )  ", " b , 2 "])
def test_broker_is_read_as_people_write_it(text: str):
    assert BrokerId.parse(text) == BrokerId("b", 2)


@pytest.mark.parametrize("broker", [BrokerId("b", 2), BrokerId("B", 0), BrokerId("a b", 11)])
def test_what_a_broker_is_called_reads_back(broker: BrokerId):
    assert BrokerId.parse(str(broker)) == broker
    assert BrokerId.parse(broker.short) == broker


def test_broker_is_called_as_in_the_paper():
    assert str(BrokerId("viii", 4)) == "B(viii, 4)"
    assert BrokerId("viii", 4).short == "viii,4"


@pytest.mark.parametrize("text", ["", "b", "b,2,3", "B(b,2", "b;2", "(b,2)", "B(B(b,2))"])
def test_text_that_names_no_broker_is_refused(text: str):
    with pytest.raises(
        LabelOrderError, match=r"label order property: .* is not a broker"
    ) as caught:
        BrokerId.parse(text)
    assert caught.value.label == text


def test_cluster_before_region_is_refused_with_the_right_order():
    with pytest.raises(LabelOrderError, match=r"did you mean b,2\?") as caught:
        BrokerId.parse("2,b")
    assert caught.value.label == "2,b"


@pytest.mark.parametrize("text", ["b,x", "b,-1", "b,1.0", "b,"])
def test_cluster_that_is_no_index_is_refused(text: str):
    with pytest.raises(LabelOrderError, match="must come second and be an integer"):
        BrokerId.parse(text)


@pytest.mark.parametrize("text", ["1,2", ",2"])
def test_region_that_is_no_label_is_refused(text: str):
    with pytest.raises(AmbiguousLabel):
        BrokerId.parse(text)


@pytest.mark.parametrize("label", ["a", "viii", "r001", "north east", "2nd", "é", "B"])
def test_plain_labels_are_taken(label: str):
    check_region_label(label)


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("", "not empty"),
        (" a", "no space at its ends"),
        ("a,b", "no comma"),
        ("a(b)", "no bracket"),
        ("a\tb", "no control character"),
        ("12", "looks like a cluster index"),
    ],
)
def test_label_that_could_be_misread_is_refused(label: str, reason: str):
    with pytest.raises(AmbiguousLabel, match=reason) as caught:
        check_region_label(label)
    assert caught.value.label == label


def test_brokers_sort_by_region_and_then_by_cluster():
    brokers = [BrokerId("b", 0), BrokerId("a", 1), BrokerId("a", 0)]
    assert sorted(brokers) == [BrokerId("a", 0), BrokerId("a", 1), BrokerId("b", 0)]
