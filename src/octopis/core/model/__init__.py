"""Vocabulary that every room shares: immutable, no IO."""

from octopis.core.model.broker_id import BrokerId
from octopis.core.model.cluster_bit_vector import ClusterBitVector
from octopis.core.model.notification import Notification, Value

__all__ = ["BrokerId", "ClusterBitVector", "Notification", "Value"]
