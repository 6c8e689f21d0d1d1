import os
import signal
import threading
from collections.abc import Iterator

import pytest

from octopis.demo.interrupts import interrupts_cancel, stops_as_interrupts

USUAL = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}


@pytest.fixture(autouse=True)
def _signals_mean_the_usual() -> Iterator[None]:
    """Whatever runs these tests, and the Spark that others share, may have a say in them."""
    before = {number: signal.signal(number, handler) for number, handler in USUAL.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_stop_from_outside_is_an_interrupt_and_only_meanwhile(number: int):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), stops_as_interrupts():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_stop_calls_whoever_handles_ctrl_c():
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append("ctrl-c"))
    with stops_as_interrupts():
        os.kill(os.getpid(), signal.SIGTERM)
    assert heard == ["ctrl-c"]
    with interrupts_cancel():
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    os.kill(os.getpid(), signal.SIGINT)
    assert heard == ["ctrl-c", "ctrl-c"]


def test_stop_is_heard_where_ctrl_c_is_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), stops_as_interrupts():
        os.kill(os.getpid(), signal.SIGTERM)


def test_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stops_as_interrupts():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_leave_signals_alone():
    done = []

    def work() -> None:
        with stops_as_interrupts(), interrupts_cancel():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
