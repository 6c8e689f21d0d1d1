from octopis.core.model import ClusterBitVector
from octopis.core.routing import NotificationMessage
from support.overlays import ONE


def test_plain_notification_carries_no_clusters_and_no_brokers():
    assert not NotificationMessage(ONE).cbv_p
    assert NotificationMessage(ONE).targets == 0


def test_copy_shares_the_payload():
    assert NotificationMessage(ONE, ClusterBitVector(0b10)).notification.payload is ONE.payload
