import pytest

from octopis.broker.settings import ClientPolicy, ClientQueues
from octopis.core.wire.client import (
    AnswerItem,
    Consumed,
    Delivery,
    decode_to_client,
    encode_publish,
    encode_request,
)
from octopis.core.wire.control import Ping, Pong, Status, StatusRequest, encode_control
from octopis.core.wire.frames import FrameDecoder
from octopis.core.wire.published import decode_published, encode_published
from octopis.errors import ProtocolError
from support.live import line, overlay, raw_client, ready, run_live, until

(HERE,) = line(1).brokers
(ONE,) = decode_published(b"\x91" + encode_published({"x": 1}, b"", "me", 1, 1))


def with_session(work, **options: object) -> None:
    """Run work(session, raw client at its other end, broker); the window is 100."""

    async def whole() -> None:
        async with ready(overlay(line(1), **options)) as live, raw_client(live[HERE]) as peer:
            await work(live[HERE].clients["raw"], peer, live[HERE])

    run_live(whole())


async def deliveries(peer, count: int) -> list[Delivery]:
    found: list[Delivery] = []
    while len(found) < count:
        for frame in await peer.next_frames():
            said = decode_to_client(frame)
            if isinstance(said, list):
                found += [each for each in said if isinstance(each, Delivery)]
    return found


def test_subscriptions_are_named_by_the_clients_numbers():
    async def work(session, peer, _) -> None:
        session.numbers |= {"s1": 7, "s2": 9}
        session.deliver(ONE, ["s2", "s1"])
        session.pump()
        (found,) = await deliveries(peer, 1)
        assert found.numbers == [9, 7]
        assert found.notification.attributes == {"x": 1}

    with_session(work)


def test_no_more_than_the_window_is_sent_until_some_is_consumed():
    async def work(session, peer, _) -> None:
        session.numbers["s"] = 1
        for _ in range(250):
            session.deliver(ONE, ["s"])
        session.pump()
        assert (session.deliveries.count, len(session.queue)) == (100, 150)
        await deliveries(peer, 100)
        await peer.send(encode_request(Consumed(60)))
        await deliveries(peer, 60)
        assert (session.deliveries.count, len(session.queue)) == (160, 90)

    with_session(work)


def test_answers_go_past_deliveries_that_wait():
    async def work(session, peer, _) -> None:
        session.numbers["s"] = 1
        for _ in range(250):
            session.deliver(ONE, ["s"])
        session.pump()
        await deliveries(peer, 100)
        session.answer(5)
        session.pump()
        assert [decode_to_client(frame) for frame in await peer.next_frames()] == [[AnswerItem(5)]]

    with_session(work)


def test_pings_and_status_requests_are_answered_at_once():
    async def work(_, peer, broker) -> None:
        broker.intake.close()  # also while requests wait
        await peer.send(encode_control(Ping()) + encode_control(StatusRequest(4)))
        said = []
        while len(said) < 2:
            said += [decode_to_client(frame) for frame in await peer.next_frames()]
        assert said[0] == Pong()
        assert isinstance(said[1], Status)
        assert (said[1].request, said[1].status["ready"]) == (4, True)

    with_session(work)


def test_consumed_may_only_rise():
    async def work(session, *_) -> None:
        session.numbers["s"] = 1
        session.deliver(ONE, ["s"])
        session.pump()
        session._take_consumed(Consumed(1))
        for wrong in (0, 2):
            with pytest.raises(ProtocolError, match="cannot be consumed"):
                session._take_consumed(Consumed(wrong))

    with_session(work)


@pytest.mark.parametrize("policy", list(ClientPolicy))
def test_bound_of_a_clients_queue(policy: ClientPolicy):
    async def work(session, _, broker) -> None:
        session.numbers["s"] = 1
        for _ in range(50):
            session.deliver(ONE, ["s"])
        session.deliveries.window = 0  # nothing can leave
        session.pump()
        assert bool(broker.backpressure.outputs) is (policy is ClientPolicy.PAUSE)
        if policy is ClientPolicy.DROP_OLDEST:
            assert (len(session.queue), session.dropped) == (20, 30)
        else:
            assert session.connection.is_closing
            await until(lambda: not broker.clients)
            assert broker.status()["drops"]["clients_left"] == 50
            assert not broker.backpressure.outputs

    queues = ClientQueues(capacity=20, high_water=10, policy=policy)
    with_session(work, client_queues=queues)


def test_publications_wait_as_copies_of_their_bytes():
    async def work(session, _, broker) -> None:
        broker.intake.close()
        data = bytearray(encode_publish(1, [ONE.encoded]))
        session.frames_arrived(session.connection, FrameDecoder().receive_data(bytes(data)))
        (request,) = session.publications
        assert isinstance(request.notifications, bytes)
        assert session.publications_bytes == len(request.notifications)

    with_session(work)


def test_client_that_asks_for_status_and_never_reads_it_is_closed():
    async def work(session, _, broker) -> None:
        session.connection.is_writable = False
        for request in range(100):
            session._reply(Status(request, {}))
        with pytest.raises(ProtocolError, match="does not read its answers"):
            session._reply(Status(101, {}))
        assert broker.clients

    with_session(work)


def test_status_that_had_to_wait_is_sent_when_the_client_reads_again():
    async def work(session, peer, _) -> None:
        session.connection.is_writable = False
        session._reply(Pong())
        session.connection.is_writable = True
        session.may_write(session.connection)
        assert [decode_to_client(frame) for frame in await peer.next_frames()] == [Pong()]

    with_session(work)
