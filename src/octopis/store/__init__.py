"""What a broker keeps on disk: segments of records, and small state beside them."""

from octopis.store.check import Report, check
from octopis.store.files import Files, RealFiles
from octopis.store.journal import Sync
from octopis.store.recovery import Damage
from octopis.store.store import Store, SyncTimes

__all__ = ["Damage", "Files", "RealFiles", "Report", "Store", "Sync", "SyncTimes", "check"]
