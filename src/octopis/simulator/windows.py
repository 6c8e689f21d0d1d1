"""Every message and every window: what a run at level `full` writes down and checks beyond others.

Counts what enters and leaves each queue by itself, window by window, so that the counts of the
Link Status Table can be checked against it.
"""

from collections import Counter

from octopis.simulator.audience import Copy
from octopis.simulator.kernel import Kernel
from octopis.simulator.laws import Laws
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output


class Windows:
    """Is told of every message by the kernel, and samples all queues at the end of each window."""

    def __init__(self, ledger: Ledger, laws: Laws, window_ns: int) -> None:
        self._ledger = ledger
        self._laws = laws
        self._window_ns = window_ns
        self._kernel: Kernel
        self._used: dict[int, Output] = {}
        self._lengths: Counter[int] = Counter()
        self._in: Counter[int] = Counter()
        self._out: Counter[int] = Counter()
        self._leaves: dict[int, int] = {}
        """When the message of each output that has a slot leaves the queue."""

    def watch(self, now: int, kernel: Kernel) -> None:
        """Sample the kernel's queues until it is idle."""
        self._kernel = kernel
        end = (now // self._window_ns + 1) * self._window_ns
        kernel.control(end, self._close, first=True)

    def entered(self, output: Output, now: int) -> None:  # noqa: ARG002 - counted in this window
        """Count a message that is put on a queue."""
        self._used[output.index] = output
        self._lengths[output.index] += 1
        self._in[output.index] += 1

    def message(  # noqa: PLR0913, PLR0917 - as the kernel's protocol
        self, output: Output, copy: Copy, enqueued: int, left: int | None, ahead: int, fate: str
    ) -> None:
        """Count a message that leaves its queue at a known time, or is lost from it now."""
        if left is None:
            self._lengths[output.index] -= 1  # it did not go over the link
        else:
            if self._leaves.pop(output.index, None) is not None:
                self._left(output.index)  # it went before this one got its slot
            self._leaves[output.index] = left
        self._ledger.message(output, copy, enqueued, left, ahead, fate)

    def cut(self, output: Output) -> None:
        """Forget a queue whose link went down."""
        for counts in (self._lengths, self._in, self._out, self._leaves):
            counts.pop(output.index, None)

    def _left(self, index: int) -> None:
        self._lengths[index] -= 1
        self._out[index] += 1

    def _close(self, now: int) -> None:
        """End a window: check and write down the state of every queue that was in use."""
        for index, leaves in list(self._leaves.items()):
            if leaves < now:
                self._left(index)
                del self._leaves[index]
        for index, output in sorted(self._used.items()):
            counted = self._lengths[index], self._in[index], self._out[index]
            status = output.tracked_status
            status.roll(now)
            leaving_now = self._leaves.get(index) == now  # belongs to the window that begins
            seen = (counted[0] - leaving_now, *counted[1:])
            self._laws.link_status(output, seen, now)
            if counted == (0, 0, 0):
                del self._used[index]
            else:
                self._ledger.sample(output, counted, status.longest_uncongested, now)
        self._in.clear()
        self._out.clear()
        following = self._kernel.next_time
        if following is not None:
            # While no queue is in use there is nothing to see: go to where something happens.
            begin = now if self._used else max(now, following)
            end = (begin // self._window_ns + 1) * self._window_ns
            self._kernel.control(end, self._close, first=True)
