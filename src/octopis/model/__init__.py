"""Vocabulary that every room shares: immutable, no IO."""

from octopis.model.broker_id import BrokerId
from octopis.model.cluster_bit_vector import ClusterBitVector
from octopis.model.notification import Notification, Value

__all__ = ["BrokerId", "ClusterBitVector", "Notification", "Value"]
