import os
import signal
import threading
from collections.abc import Iterator

import pytest

from octopis.signals import (
    first_interrupt_calls,
    handled,
    interrupts_cancel,
    interrupts_wait,
    stops_as_interrupts,
)

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


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_handler_is_there_meanwhile_and_can_be_put_back():
    heard = []
    with handled(signal.SIGINT, lambda *_: heard.append(1)) as again:
        ctrl_c()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a library may
        ctrl_c()
        again()
        ctrl_c()
    assert heard == [1, 1]
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


def test_first_interrupt_calls_and_the_second_does_what_it_did():
    heard = []

    def work() -> None:
        with first_interrupt_calls(lambda: heard.append(1)):
            ctrl_c()
            heard.append(2)
            ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert heard == [1, 2]


def test_interrupt_waits_until_it_is_let_come():
    done = []

    def start() -> None:
        with interrupts_wait() as let_them_come:
            ctrl_c()
            done.append("started")
            let_them_come()
            done.append("never")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]


def test_interrupt_that_comes_twice_does_not_wait():
    def start() -> None:
        with interrupts_wait():
            ctrl_c()
            ctrl_c()
            pytest.fail("must not come here")

    with pytest.raises(KeyboardInterrupt):
        start()


def test_interrupt_that_waited_is_heard_by_whoever_listens():
    heard = []
    with handled(signal.SIGINT, lambda *_: heard.append(1)), interrupts_wait() as let_them_come:
        ctrl_c()
        assert heard == []
        let_them_come()
        assert heard == [1]


def test_other_threads_leave_signals_alone():
    done = []

    def work() -> None:
        with (
            stops_as_interrupts(),
            interrupts_cancel(),
            first_interrupt_calls(lambda: None),
            interrupts_wait() as let_them_come,
        ):
            let_them_come()
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
