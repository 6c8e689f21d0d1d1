"""The routing algorithms, each by its name in the paper (SBP, SNR, DNR, BID), and ours (TNR).

strategy         the names, what an algorithm is made of, and how it is chosen
sbp              how subscriptions spread under SNR and DNR
snr, dnr         how notifications follow them
bid              both for BID
tnr              the rule of ours, with the plan of ways
spreading        how subscriptions spread by it
target_routing   how notifications follow it
repair           what it does about faults
hosts            which host has which subscriptions, for BID and TNR
"""

from octopis.core.routing.algorithms.strategy import Algorithm

__all__ = ["Algorithm"]
