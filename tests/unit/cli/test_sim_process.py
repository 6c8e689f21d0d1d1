import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from octopis.scenario.folder import Scenario
from octopis.trace import Level, read_summary
from support.sim_command import BURST, SMALL, assert_consistent
from support.simulations import digests

OCTOPIS = Path(sys.executable).with_name("octopis")
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


class TestRealCommand:
    """As users start it."""

    def start(self, *arguments: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [OCTOPIS, "sim", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )

    def test_processes_with_different_hash_seeds_leave_the_same_files(self):
        for name, seed in (("one", "1"), ("other", "2")):
            made = self.start("example", "--out", f"{name}/s", *BURST, hash_seed=seed)
            words = ("run", f"{name}/s", "--out", f"{name}/t", "--level", "full")
            done = self.start(*words, "--algorithm", "dnr", hash_seed=seed)
            assert (made.returncode, done.returncode, done.stderr) == (0, 0, "")
        assert digests(Path("one/s")) == digests(Path("other/s"))
        assert digests(Path("one/t")) == digests(Path("other/t"))

    def test_fault_is_one_sentence_and_status_2(self):
        done = self.start("run", "nowhere")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1


class TestInterrupt:
    """Ctrl-C, in a real process whose progress bar is watched on a terminal."""

    @pytest.fixture(autouse=True)
    def _usual_ctrl_c(self) -> Iterator[None]:
        """Let Ctrl-C mean what it usually does: a Spark of other tests may have a say in it."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    @pytest.fixture
    def scenario(self, example) -> Scenario:
        """Make a scenario that takes real brokers many seconds."""
        words = ("--subscribers", "60", "--publishers", "10", "--notifications", "3000")
        return example(*words)

    def test_run_leaves_a_valid_partial_trace(self, scenario: Scenario):
        terminal, end = os.openpty()
        with subprocess.Popen(
            [OCTOPIS, "sim", "run", "scenario", "--out", "trace", "--real-brokers"],
            stdout=subprocess.PIPE,
            stderr=end,
            start_new_session=True,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "160"},
        ) as process:
            os.close(end)
            try:
                shown = read_until(terminal, r"[1-9]\d*/30000")
                process.send_signal(signal.SIGINT)
                shown += read_until(terminal, None)
                printed, _ = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()  # only matters where the test has failed
                os.close(terminal)
        assert (process.returncode, printed) == (130, b"")
        assert "notifications" in shown
        assert shown.replace("\r", "").endswith(
            "octopis: a partial trace, marked as such, is in trace\noctopis: stopped\n"
        )
        summary = read_summary(Path("trace"))
        assert (summary.state, summary.reason) == ("partial", "interrupted")
        assert 1024 <= summary.notifications < 30_000
        assert {path.stem for path in Path("trace").glob("*.parquet")} == set(
            Level.DELIVERIES.tables
        )
        assert_consistent(Path("trace"), scenario, summary)
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)

    def test_run_that_has_not_begun_leaves_nothing_and_speaks_of_no_trace(
        self, sim, example, monkeypatch: pytest.MonkeyPatch
    ):
        def interrupted(*_arguments, **_options) -> None:
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr("octopis.simulator.run.Simulation", interrupted)
        example(*SMALL)
        status, printed, error = sim("run", "scenario", "--out", "trace")
        assert (status, printed, error) == (130, "", "octopis: stopped\n")
        assert not Path("trace").exists()

    def test_step_that_was_begun_is_finished(self, sim, example, monkeypatch: pytest.MonkeyPatch):
        told = []

        @contextmanager
        def virtual_progress():
            def interrupt(phase: str, done: int, _total: int, _now_ns: int) -> None:
                if phase == "notifications" and not told:
                    signal.raise_signal(signal.SIGINT)
                    told.append(done)

            yield interrupt

        monkeypatch.setattr("octopis.cli.sim.virtual_progress", virtual_progress)
        scenario = example(*BURST, "--notifications", "600")
        before = signal.getsignal(signal.SIGINT)
        assert sim("run", "scenario", "--out", "trace")[0] == 130
        summary = read_summary(Path("trace"))
        assert summary.state == "partial"
        assert told == [summary.notifications]
        assert summary.deliveries_lost == 0
        assert_consistent(Path("trace"), scenario, summary)
        assert signal.getsignal(signal.SIGINT) is before


def read_until(terminal: int, wanted: str | None) -> str:
    """Return what comes from a terminal until `wanted` matches, or until nobody writes to it."""
    shown, deadline = b"", monotonic() + PATIENCE_S
    while wanted is None or not re.search(wanted.encode(), shown):
        ready, _, _ = select.select([terminal], [], [], max(0, deadline - monotonic()))
        assert ready, f"{wanted!r} did not come; there was {shown!r}"
        try:
            more = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end was closed
            more = b""
        if not more:
            assert wanted is None, f"{wanted!r} did not come; there was {shown!r}"
            break
        shown += more
    return shown.decode(errors="replace")
