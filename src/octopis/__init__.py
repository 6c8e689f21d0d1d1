"""OctopiS: content-based publish/subscribe whose brokers route around congestion.

`connect` and `connect_sync` are all that most programs need:

    async with octopis.connect("octopis://127.0.0.1:7400") as client:
        await client.publish({"symbol": "IBM", "price": 84.0})
"""

from importlib import import_module
from typing import TYPE_CHECKING

from octopis.version import __version__

if TYPE_CHECKING:
    from octopis.client.client import Client, connect
    from octopis.client.credentials import Credentials
    from octopis.client.durable import Batch, DurableNotifications
    from octopis.client.streams import Gap, Notifications, Received
    from octopis.client.sync_client import SyncClient, connect_sync
    from octopis.client.sync_streams import SyncDurableNotifications, SyncNotifications
    from octopis.core.wire.durable import DurableInfo

__all__ = [
    "Batch",
    "Client",
    "Credentials",
    "DurableInfo",
    "DurableNotifications",
    "Gap",
    "Notifications",
    "Received",
    "SyncClient",
    "SyncDurableNotifications",
    "SyncNotifications",
    "__version__",
    "connect",
    "connect_sync",
]

_HOMES = {
    "Client": "octopis.client.client",
    "connect": "octopis.client.client",
    "Batch": "octopis.client.durable",
    "Credentials": "octopis.client.credentials",
    "DurableInfo": "octopis.core.wire.durable",
    "DurableNotifications": "octopis.client.durable",
    "Gap": "octopis.client.streams",
    "Notifications": "octopis.client.streams",
    "Received": "octopis.client.streams",
    "SyncClient": "octopis.client.sync_client",
    "SyncDurableNotifications": "octopis.client.sync_streams",
    "SyncNotifications": "octopis.client.sync_streams",
    "connect_sync": "octopis.client.sync_client",
}


def __getattr__(name: str) -> object:
    # Only when asked for: the simulator and the pipeline need no sockets.
    if name not in _HOMES:
        raise AttributeError(f"module 'octopis' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
