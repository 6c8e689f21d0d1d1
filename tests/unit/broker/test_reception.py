from octopis.broker.reception import Reception, dials
from octopis.core.model import BrokerId
from octopis.core.wire.greeting import BrokerHello
from octopis.core.wire.link import overlay_digest
from octopis.errors import ConnectionFailed
from support.live import line, overlay, ready, run_live

SCOT = line(2, 2)
A0, A1, B0, B1 = SCOT.brokers


def test_of_two_neighbours_the_first_in_the_overlay_dials():
    async def work() -> None:
        async with ready(overlay(SCOT)) as live:
            assert dials(live[A0], A0, B0)
            assert not dials(live[A0], B0, A0)
            assert dials(live[B1], A1, B1)

    run_live(work())


def test_broker_is_refused_for_the_first_reason_that_holds():
    async def work() -> None:
        async with ready(overlay(SCOT)) as live:
            reception = Reception(live[B0])
            digest = overlay_digest(SCOT)

            def reason(**changes: object) -> str:
                fields = {"broker": A0, "to": B0, "overlay": digest, "algorithm": "snr"}
                refusal = reception._refusal(BrokerHello(**fields | changes))
                assert isinstance(refusal, ConnectionFailed)
                return str(refusal)

            assert "belongs to another overlay" in reason(overlay="x", to=A0)
            assert "looks for B(a, 0)" in reason(to=A0, broker=BrokerId("z", 0))
            assert "is no neighbour" in reason(broker=A1)
            assert "routes by bid" in reason(algorithm="bid", broker=B1)
            assert "it is B(b, 0) that dials" in reason(broker=B1)
            assert "is up already" in reason()

    run_live(work())


def test_neighbour_whose_link_is_down_is_taken_in():
    async def work() -> None:
        async with ready(overlay(SCOT)) as live:
            link, live[B0].links[A0].connection = live[B0].links[A0].connection, None
            hello = BrokerHello(A0, B0, overlay_digest(SCOT), "snr")
            assert Reception(live[B0])._refusal(hello) is None
            live[B0].links[A0].connection = link

    run_live(work())


def test_strangers_are_counted_only_while_they_are_strangers():
    async def work() -> None:
        async with ready(overlay(SCOT)) as live:
            assert all(not broker._reception.connections for broker in live.values())

    run_live(work())
