"""Under DNR, a batch is routed as its members would be one by one, whatever the queues are like."""

from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.model import BrokerId, ClusterBitVector, Notification
from octopis.core.routing import Algorithm, Broker, Enqueue, Message, NotificationMessage
from support.network import Network
from support.overlays import A0, B0, CHAIN

LINKS = CHAIN.neighbours(B0)
COUNT = st.integers(0, 12)
STATES = st.fixed_dictionaries({link: st.tuples(COUNT, COUNT, COUNT) for link in LINKS})
BATCH = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), min_size=1, max_size=30)


def broker_with(states: dict[BrokerId, tuple[int, int, int]], down: set[BrokerId]) -> Broker:
    """Return B0, with somebody behind each link who wants some of x = 0 .. 7."""
    network = Network(CHAIN, Algorithm.DNR)
    for bit, place in enumerate(LINKS):
        wanted = ", ".join(str(x) for x in range(8) if x % (bit + 2))
        network.subscribe(place, "client", f"at {place}", f"x IN ({wanted})")
    network.settle()
    broker = network.brokers[B0]
    for link, (length, q_in, q_out) in states.items():
        status = broker.link_status[link]
        status.queue_length = length
        status.finish_window(q_in, q_out)
    for link in sorted(down):
        broker.link_down(link)
    return broker


def counts(broker: Broker) -> list[tuple[int, int]]:
    return [(status.queue_length, status.entering) for status in broker.link_status.values()]


def arrive(
    broker: Broker, batch: list[NotificationMessage], sender: BrokerId | None
) -> dict[BrokerId, list[Message]]:
    effects = (
        broker.client_publishes([routed.notification for routed in batch])
        if sender is None
        else broker.messages_arrived(sender, batch)
    )
    return {effect.link: effect.messages for effect in effects if isinstance(effect, Enqueue)}


@settings(max_examples=250, deadline=None)
@given(STATES, BATCH, st.sampled_from([None, A0]), st.sets(st.sampled_from(LINKS), max_size=2))
def test_batch_is_routed_as_one_by_one(states, batch, sender, down):
    # Bit 1 and 2 of CBV_p are the other clusters; at the publisher's host there is none yet.
    copies = [
        NotificationMessage(
            Notification({"x": x, "n": n}), ClusterBitVector(pending << 1 if sender else 0)
        )
        for n, (x, pending) in enumerate(batch)
    ]
    together, apart = broker_with(states, down), broker_with(states, down)
    one = arrive(together, copies, sender)
    other: dict[BrokerId, list[Message]] = {}
    for copy in copies:
        for link, messages in arrive(apart, [copy], sender).items():
            other.setdefault(link, []).extend(messages)
    assert one == other
    assert together.counters == apart.counters
    assert counts(together) == counts(apart)
