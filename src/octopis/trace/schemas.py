"""The tables of a trace, as Arrow schemas.

A notification is known by its publisher and the publisher's sequence number. All times are
nanoseconds: of virtual time in a simulation, since 1970 (UTC) in a live run. Names repeat a lot,
so they are dictionary-encoded; to Parquet readers they are strings.

subscriptions   one row per subscription, when the last broker has stored it
stored          one row per subscription and broker
publications    one row per notification, when its last copy has arrived
deliveries      one row per notification and subscription that got it; its delay is from the
                notification's intended time, so that nobody has to look that up again
ims             one row per inter-broker message (IM), when it has left its output queue
queues          one row per output queue and window, where the queue was not empty or in use
links           one row per output queue, when the run ends
"""

import pyarrow as pa

NAME = pa.dictionary(pa.int32(), pa.string())

SUBSCRIPTIONS = pa.schema(
    [
        ("subscription", NAME),
        ("client", NAME),
        ("broker", NAME),
        ("subscribed_ns", pa.int64()),
        ("settled_ns", pa.int64()),
        ("ims", pa.int32()),
        ("duplicates", pa.int32()),
        ("tree_length_max", pa.int16()),
        ("tree_length_mean", pa.float64()),
    ]
)
STORED = pa.schema(
    [("subscription", NAME), ("broker", NAME), ("stored_ns", pa.int64()), ("hops", pa.int16())]
)
PUBLICATIONS = pa.schema(
    [
        ("publisher", NAME),
        ("sequence", pa.int64()),
        ("broker", NAME),
        ("intended_ns", pa.int64()),
        ("accepted_ns", pa.int64()),
        ("completed_ns", pa.int64()),
        ("ims", pa.int32()),
        ("deliveries", pa.int32()),
        ("matching_ns", pa.int64()),
    ]
)
DELIVERIES = pa.schema(
    [
        ("publisher", NAME),
        ("sequence", pa.int64()),
        ("subscription", NAME),
        ("broker", NAME),
        ("delivered_ns", pa.int64()),
        ("delay_ns", pa.int64()),
        ("hops", pa.int16()),
    ]
)
IMS = pa.schema(
    [
        ("source", NAME),
        ("target", NAME),
        ("link_kind", NAME),
        ("message", NAME),
        ("publisher", NAME),
        ("sequence", pa.int64()),
        ("subscription", NAME),
        ("enqueued_ns", pa.int64()),
        ("left_ns", pa.int64()),
        ("queue_length", pa.int32()),
        ("cbv_p", pa.string()),
        ("bids", pa.int32()),
        ("reason", NAME),
        ("hops", pa.int16()),
        ("fate", NAME),
    ]
)
QUEUES = pa.schema(
    [
        ("window_end_ns", pa.int64()),
        ("source", NAME),
        ("target", NAME),
        ("queue_length", pa.int32()),
        ("q_in", pa.int32()),
        ("q_out", pa.int32()),
        ("overloaded", pa.bool_()),
    ]
)
LINKS = pa.schema(
    [
        ("source", NAME),
        ("target", NAME),
        ("link_kind", NAME),
        ("subscription_ims", pa.int64()),
        ("notification_ims", pa.int64()),
        ("queue_length_max", pa.int64()),
        ("waited_ns", pa.int64()),
        ("dropped", pa.int64()),
        ("cut", pa.int64()),
        ("high_rate_ims", pa.int64()),
    ]
)

SCHEMAS = {
    "subscriptions": SUBSCRIPTIONS,
    "stored": STORED,
    "publications": PUBLICATIONS,
    "deliveries": DELIVERIES,
    "ims": IMS,
    "queues": QUEUES,
    "links": LINKS,
}
