from octopis.core.model import ClusterBitVector
from octopis.core.routing import NotificationMessage
from octopis.core.routing.messages import copy_for
from support.overlays import ONE


def test_plain_notification_carries_no_clusters_and_no_brokers():
    assert not NotificationMessage(ONE).cbv_p
    assert NotificationMessage(ONE).targets == 0


def test_copy_shares_the_payload():
    assert NotificationMessage(ONE, ClusterBitVector(0b10)).notification.payload is ONE.payload


def test_message_that_goes_on_as_it_came_is_not_copied():
    message = NotificationMessage(ONE, targets=0b110, tried=1, number=7, distances=(1, 2))
    assert copy_for(message, 0b110, 1) is message
    assert copy_for(message, 0b110, 0).tried == 0
    assert copy_for(message, 0b100, 1).distances == (2,)
