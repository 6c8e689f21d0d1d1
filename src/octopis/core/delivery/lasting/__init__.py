"""Channels that outlive their brokers: what is accepted is on disk before it goes anywhere.

What is here has no files and no threads: a store is handed in, and the driver says what is synced.
"""
