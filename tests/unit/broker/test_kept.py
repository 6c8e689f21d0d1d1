from octopis.broker.clients.kept import SentDeliveries, new_token, owner_of
from octopis.broker.memory import Memory
from octopis.broker.settings import Limits, QueueBounds
from octopis.core.wire.greeting import ClientHello


def kept(memory: Memory | None = None, backlog: int = 0, **bounds: int) -> SentDeliveries:
    limits = {"high_water": 1, "high_water_bytes": 1, **bounds}
    hello = ClientHello("me", 100, backlog=backlog)
    return SentDeliveries(hello, QueueBounds(**limits), memory or Memory(10**9), keeps=True)


def items(*names: str) -> list[bytes]:
    return [name.encode() for name in names]


def test_what_was_not_received_is_given_back_in_order_with_the_gap_before_it():
    sent = kept(backlog=5)
    sent.add(items("a", "b"), 10, 0)
    sent.add(items("c"), 10, dropped=7)
    assert list(sent.after(5)) == [(0, items("a", "b")), (7, items("c"))]
    assert list(sent.after(6)) == [(0, items("b")), (7, items("c"))]
    assert list(sent.after(7)) == [(7, items("c"))]
    assert list(sent.after(8)) == []
    assert sent.count == 8


def test_gap_whose_next_delivery_was_received_is_not_told_again():
    sent = kept()
    sent.add(items("a", "b"), 10, dropped=7)
    assert list(sent.after(1)) == [(0, items("b"))]


def test_what_is_consumed_is_forgotten_and_cannot_be_asked_for():
    sent = kept()
    sent.add(items("a", "b"), 10, 0)
    sent.add(items("c"), 10, 0)
    sent.consumed(1)  # half of a frame: it is kept whole
    assert sent.reaches(1)
    sent.consumed(2)
    assert not sent.reaches(1)
    assert sent.reaches(2)
    assert sent.reaches(3)
    assert not sent.reaches(4)


def test_past_its_bound_the_oldest_is_let_go():
    sent = kept(capacity_bytes=1_000)
    for number in range(20):
        sent.add(items(str(number)), 152, 0)
    assert not sent.reaches(0)
    assert list(sent.after(15)) == [(0, items(str(number))) for number in range(15, 20)]
    assert sent.start == 15


def test_what_is_kept_counts_and_is_let_go_before_anybody_is_sent_away():
    class Client:
        sent_away = False

        def send_away(self, _: str) -> None:
            self.sent_away = True

    memory, client = Memory(1_000_000), Client()
    little, much = kept(memory), kept(memory)
    little.add(items("a"), 200_000, 0)
    much.add(items("a"), 400_000, 0)
    memory.hold(client, 300_000)
    assert memory.bytes >= 900_000
    memory.hold(client, 500_000)
    assert (little.reaches(0), much.reaches(0), client.sent_away) == (True, False, False)
    memory.hold(client, 900_000)
    assert (little.reaches(0), client.sent_away) == (False, False)
    assert memory.bytes == 900_000
    memory.hold(client, 1_000_001)
    assert client.sent_away


def test_nothing_is_kept_or_counted_after_the_end():
    memory = Memory(10**9)
    sent = kept(memory)
    sent.add(items("a"), 200_000, 0)
    assert memory.bytes >= 200_000
    sent.close()
    sent.add(items("b"), 200_000, 0)
    assert (memory.bytes, sent.count, sent.reaches(1)) == (0, 2, False)


def test_only_who_has_a_secret_and_does_more_than_look_gets_a_token():
    known = ClientHello("me", 1, secret=owner_of(""))
    tokens = {new_token(known, Limits()) for _ in range(10)}
    assert len(tokens) == 10
    assert not new_token(ClientHello("me", 1), Limits())
    assert not new_token(ClientHello("me", 1, secret=known.secret, observer=True), Limits())
    assert not new_token(known, Limits(session_s=0))
