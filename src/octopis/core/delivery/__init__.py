"""Once and in order between two hosts, whatever happens between them: channels.

A channel leads from the host of publishers to a host of subscribers (its target). What is here has
no IO and no clock: live brokers and the simulator drive the same state machines.
"""
