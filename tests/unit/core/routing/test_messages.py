import msgspec
import pytest

from octopis.core.filters import parse_filter
from octopis.core.model import ClusterBitVector
from octopis.core.routing import NotificationMessage, Subscribe, Subscription, Unsubscribe
from octopis.core.routing.messages import Flooded, HostState, HostVersions, Refresh, TableSnapshot
from support.overlays import A0, ONE

SUBSCRIPTION = Subscription("s", parse_filter("x = 1"))
MESSAGES = [
    SUBSCRIPTION,
    Subscribe(SUBSCRIPTION, ClusterBitVector(0b1), A0),
    Unsubscribe("s"),
    TableSnapshot(()),
    NotificationMessage(ONE),
    Flooded(A0, 0, 1, SUBSCRIPTION, None),
    HostState(A0, 1, 0, ()),
    HostVersions({}),
    Refresh(A0, 0),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages_never_change(message: msgspec.Struct):
    with pytest.raises(AttributeError):
        setattr(message, message.__struct_fields__[0], None)


def test_plain_notification_carries_no_clusters_and_no_brokers():
    assert not NotificationMessage(ONE).cbv_p
    assert NotificationMessage(ONE).bids == ()


def test_copy_shares_the_payload():
    assert NotificationMessage(ONE, ClusterBitVector(0b10)).notification.payload is ONE.payload
