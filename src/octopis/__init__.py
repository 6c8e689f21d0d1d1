"""OctopiS: content-based publish/subscribe whose brokers route around congestion."""

from octopis.version import __version__

__all__ = ["__version__"]
