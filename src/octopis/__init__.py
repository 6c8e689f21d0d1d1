"""OctopiS: content-based publish/subscribe whose brokers route around congestion."""

__version__ = "0.1.0"
