"""The audit log goes on after restarts, and shows whatever was done to it."""

import json
import logging
import os
import random
import resource
import signal
from pathlib import Path

import pytest

from octopis.errors import InvalidConfiguration
from octopis.security.audit import AuditLog, Verified, verify


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit" / "b,2.jsonl"


def filled(path: Path, lines: int = 6) -> list[bytes]:
    log = AuditLog(path, Clock())
    for number in range(lines):
        log.write("login", user=f"u{number}")
    log.close()
    return path.read_bytes().splitlines(keepends=True)


def test_lines_are_json_in_order_and_verified(path: Path):
    lines = [json.loads(line) for line in filled(path)]
    assert [line["number"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert lines[2]["user"] == "u2"
    assert (lines[2]["event"], lines[2]["time"]) == ("login", 1000.0)
    assert lines[3]["previous"] == lines[2]["digest"]
    assert verify(path) == Verified(6, lines[-1]["digest"])
    assert path.stat().st_mode & 0o077 == 0


def test_empty_log_is_right(path: Path):
    AuditLog(path).close()
    assert verify(path).lines == 0
    assert verify(path).fault == ""


def test_any_changed_byte_is_found(path: Path):
    lines = filled(path)
    whole, chance = b"".join(lines), random.Random(1)  # noqa: S311 - repeatable on purpose
    for place in range(len(whole) - 1):  # the last byte of all is the end of the last line
        changed = bytearray(whole)
        changed[place] ^= 1 << chance.randrange(7)
        path.write_bytes(changed)
        found = verify(path)
        assert found.fault.startswith("line "), place
        assert found.lines == whole[:place].count(b"\n"), place


@pytest.mark.parametrize(
    "tampered",
    [
        lambda lines: lines[1:],
        lambda lines: [*lines[:2], *lines[3:]],
        lambda lines: [*lines[:3], lines[2], *lines[3:]],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [*lines[:4], lines[5], lines[4]],
        lambda lines: [*lines, lines[0]],
        lambda lines: [*lines[:2], b"\n", *lines[2:]],
        lambda lines: [*lines, b"{}\n"],
        lambda lines: [*lines, b"x" * 2**21],
        lambda lines: [*lines[:2], lines[2].replace(b'"u2"', b'"u2" '), *lines[3:]],
    ],
)
def test_removed_inserted_and_moved_lines_are_found(path: Path, tampered):
    lines = filled(path)
    path.write_bytes(b"".join(tampered(lines)))
    assert verify(path).fault.startswith("line ")


def test_line_with_a_digest_made_anew_is_found_by_the_next_one(path: Path, tmp_path: Path):
    filled(path)
    other = AuditLog(tmp_path / "other", Clock())
    for name in ("u0", "u1", "mallory"):
        other.write("login", user=name)
    other.close()
    forged = (tmp_path / "other").read_bytes().splitlines(keepends=True)
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[:2] == forged[:2]
    path.write_bytes(b"".join([*lines[:2], forged[2], *lines[3:]]))
    assert verify(path).fault.startswith("line 4: it does not follow on the line before")


def test_lines_cut_off_at_the_end_are_found_by_a_digest_noted_before(path: Path):
    lines = filled(path)
    noted = verify(path).digest
    path.write_bytes(b"".join(lines[:4]))
    assert verify(path).fault == ""  # the chain alone cannot tell
    assert "gone: cut off, or made anew" in verify(path, noted).fault
    path.write_bytes(b"".join(lines))
    assert verify(path, noted).fault == verify(path, json.loads(lines[1])["digest"]).fault == ""


def test_torn_last_line_is_told_apart_from_tampering_wherever_it_is_cut(path: Path):
    lines = filled(path)
    for kept in range(1, len(lines[-1])):
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][:kept])
        found = verify(path)
        assert (found.lines, found.fault, found.torn_bytes) == (5, "", kept)


def test_log_goes_on_after_a_restart_and_after_a_torn_line(path: Path):
    lines = filled(path)
    log = AuditLog(path, Clock())
    log.write("login", user="again")
    log.close()
    assert verify(path).lines == 7
    path.write_bytes(path.read_bytes() + lines[0][:50])
    log = AuditLog(path, Clock())
    log.write("login", user="third")
    assert verify(path) == Verified(9, log.digest)
    log.close()
    torn = json.loads(path.read_bytes().splitlines()[7])
    assert (torn["event"], torn["bytes"]) == ("torn_line", 50)
    assert torn["text"] == lines[0][:50].decode()


def test_log_whose_last_line_was_changed_is_not_gone_on_with(path: Path):
    lines = filled(path)
    path.write_bytes(b"".join(lines).replace(b"u5", b"u6"))
    with pytest.raises(InvalidConfiguration, match=r"is damaged: .* changed.*move it away"):
        AuditLog(path)
    path.write_bytes(b"hello\n")
    with pytest.raises(InvalidConfiguration, match="is damaged"):
        AuditLog(path)


def test_two_processes_do_not_write_one_log(path: Path):
    log = AuditLog(path)
    with pytest.raises(InvalidConfiguration, match="another process writes the audit log"):
        AuditLog(path)
    log.close()
    AuditLog(path).close()


def test_names_with_ends_of_lines_stay_in_their_line(path: Path):
    evil = 'x\n{"number":2,"event":"login","user":"root"}\r\u2028\u2029\x85\x1b[2J\0"'
    log = AuditLog(path)
    log.write("login_failed", user=evil, roles=[evil, "b"], at=float("nan"), error=ValueError(evil))
    log.close()
    (line,) = path.read_bytes().splitlines()
    assert line.isascii()
    assert not any(byte < 32 for byte in line)
    said = json.loads(line)
    assert (said["user"], said["roles"], said["error"]) == (evil, [evil, "b"], evil)
    assert verify(path).lines == 1
    assert len(path.read_text().splitlines()) == 1


def test_long_facts_are_cut(path: Path):
    log = AuditLog(path)
    log.write("refused", filter="\U0001f419" * 10**6, roles=["r" * 10**6] * 1000)
    log.close()
    assert path.stat().st_size < 50_000
    assert verify(path).lines == 1


def test_facts_cannot_take_the_place_of_the_logs_own(path: Path):
    log = AuditLog(path)
    with pytest.raises(AssertionError):
        log.write("login", number=7)
    log.close()


def test_flood_of_one_event_is_counted_and_hides_no_other(path: Path, clock: Clock):
    log = AuditLog(path, clock, lines_per_s=10, lines_at_once=10)
    for _ in range(1000):
        log.write("login_failed", user="mallory")
    log.write("role_changed", user="alice")
    clock.now += 1
    log.tick()
    log.write("login_failed", user="mallory")
    log.close()
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["event"] for line in lines] == [
        *["login_failed"] * 10, "role_changed", "omitted", "login_failed",
    ]  # fmt: skip
    assert lines[11]["lines"] == {"login_failed": 990}
    assert verify(path).lines == 13


@pytest.mark.parametrize(
    ("flood", "other"),
    [
        ({"user": "mallory"}, {"user": "bob"}),
        ({"address": "192.0.2.1:1"}, {"address": "192.0.2.2:1"}),
        ({"address": "2001:db8::1:1"}, {"address": "2001:db8:0:1::1:1"}),
        ({"host": "192.0.2.1"}, {"host": "192.0.2.2"}),
        ({"user": "192.0.2.1"}, {"address": "192.0.2.1:1"}),
        ({"user": "mallory"}, {}),
    ],
)
def test_nobodys_flood_hides_what_others_do(
    path: Path, clock: Clock, flood: dict[str, str], other: dict[str, str]
):
    """As with a token that was stolen: its one login must be there, whoever makes a noise."""
    log = AuditLog(path, clock)
    for _ in range(5):
        for _ in range(3_000):
            log.write("login", **flood)
        log.write("login", **other, client="thief")
        clock.now += 0.5
    log.close()
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line.get("client") for line in lines].count("thief") == 5
    assert 2_000 <= sum(line["event"] == "login" for line in lines) <= 2_300
    assert sum(line["event"] == "omitted" for line in lines) == 3


def test_another_port_or_address_of_one_host_is_no_way_around_its_share(path: Path):
    log = AuditLog(path, Clock(), lines_at_once=10)
    for port in range(50):
        log.write("login_failed", address=f"192.0.2.1:{port}")
        log.write("login_failed", address=f"2001:db8::{port}:7400")
        log.write("link_refused", host="192.0.2.1")
    log.close()
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(lines) == 31
    assert lines[-1]["lines"] == {"login_failed": 80, "link_refused": 40}


def test_all_clients_of_a_user_may_log_in_anew_at_one_time_without_a_line_lost(path: Path):
    log = AuditLog(path, Clock())
    for number in range(1_500):
        log.write("session_ended", user="service", client=f"service/{number}")
        log.write("login", user="service", client=f"service/{number}")
    log.close()
    assert verify(path).lines == 3_000
    assert b"omitted" not in path.read_bytes()


def test_clock_that_goes_back_lets_no_more_through(path: Path, clock: Clock):
    log = AuditLog(path, clock, lines_per_s=1, lines_at_once=1)
    log.write("login", user="al")
    clock.now -= 500.0
    log.write("login", user="al")
    clock.now += 1.0
    log.write("login", user="al")
    log.close()
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["event"] for line in lines] == ["login", "omitted", "login"]


def test_close_tells_what_was_omitted(path: Path):
    log = AuditLog(path, Clock(), lines_per_s=1, lines_at_once=1)
    for _ in range(3):
        log.write("limit")
    log.close()
    assert json.loads(path.read_bytes().splitlines()[-1])["lines"] == {"limit": 2}


def test_disk_that_is_full_stops_nobody_and_is_told(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
):
    log = AuditLog(path, clock)
    log.write("login", user="alice")
    # A limit of the process on file sizes: a write goes half through, as on a full disk.
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 40, before[1]))
        with caplog.at_level(logging.ERROR):
            log.write("login", user="bob")
            log.write("login", user="carol")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert len(caplog.records) == 1
    assert log.failure == "File too large"
    assert verify(path).lines == 1
    clock.now += 1
    log.write("login", user="dave")
    assert log.failure == ""
    log.close()
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["event"] for line in lines] == ["login", "omitted", "login"]
    assert lines[1]["lines"] == {"login": 2}
    assert verify(path) == Verified(3, lines[-1]["digest"])


def test_file_that_cannot_even_be_cut_stops_nobody_and_is_gone_on_with(path: Path, clock: Clock):
    """As where the disk has become read-only: neither writing works nor cutting off."""
    log = AuditLog(path, clock)
    log.write("login", user="alice")
    kept, read_only = os.dup(log._file), os.open(path, os.O_RDONLY)
    os.dup2(read_only, log._file)
    log.write("login", user="bob")
    clock.now += 1
    log.tick()
    assert log.failure
    os.write(kept, b'{"number":2,"ti')  # half a line, as a disk that fails may leave it
    os.dup2(kept, log._file)
    log.write("login", user="carol")
    assert log.failure == ""
    log.close()
    os.close(kept)
    os.close(read_only)
    assert verify(path).fault == ""
    events = [json.loads(line)["event"] for line in path.read_bytes().splitlines()]
    assert events == ["login", "login", "omitted"]


def test_file_that_cannot_be_read_or_written_is_said(tmp_path: Path):
    with pytest.raises(InvalidConfiguration, match="cannot read"):
        verify(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidConfiguration, match="cannot write"):
        AuditLog(tmp_path / "file" / "log")


def test_long_lists_say_how_many_more_there_were(path: Path):
    log = AuditLog(path, Clock())
    log.write("login", roles=[f"r{number}" for number in range(20)], few=["a", "b"])
    log.close()
    line = json.loads(path.read_text(encoding="utf-8"))
    assert line["roles"] == [*(f"r{number}" for number in range(16)), "and 4 more"]
    assert line["few"] == ["a", "b"]
