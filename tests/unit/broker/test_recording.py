import inspect

from octopis.broker.recorder import ClientLog, TraceRecorder
from octopis.broker.recording import DeliveryLog, Recording
from support.live import client_of, line, overlay, ready, run_live


def test_recorder_hears_everything_that_a_broker_tells():
    for base, heard in ((Recording, TraceRecorder), (DeliveryLog, ClientLog)):
        told = [name for name in vars(base) if not name.startswith("_")]
        assert told
        for name in told:
            assert name in vars(heard)
            ours, theirs = (inspect.signature(getattr(each, name)) for each in (base, heard))
            assert list(ours.parameters) == list(theirs.parameters)


def test_broker_without_a_trace_tells_nobody():
    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            (broker,) = live.values()
            async with client_of(broker) as client, client.subscribe("x > 0") as notifications:
                await client.publish({"x": 1})
                assert (await anext(notifications)).attributes == {"x": 1}
                assert broker.clients[client.id].log is None

    run_live(work())
