"""Small overlays under many faults, in virtual time, and whether channels keep what they promise.

A seed says all: the overlay, its links, who publishes and subscribes, and which faults happen when.
Brokers and channels are the real ones; what is here drives them as a live broker does, only worse.
"""
