"""Small overlays under many faults, in virtual time, to see what channels promise and keep.

A seed says all: the overlay, its links, who publishes and subscribes, and which faults happen when.
Brokers and channels are the real ones; what is here drives them as a live broker does, only worse.
"""
