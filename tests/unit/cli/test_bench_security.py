"""`octopis bench security` and `octopis bench fuzz`, as commands."""

import importlib.util
import json
from typing import Any

from octopis.benchmarks.fuzz import run
from octopis.benchmarks.fuzz.laws import Check
from octopis.benchmarks.fuzz.targets import TARGETS


def test_security_measures_tls_roles_and_logins(octopis):
    words = ("--notifications", "300", "--rounds", "1", "--seconds", "0.2", "--json")
    status, printed, _ = octopis("bench", "security", *words)
    assert status == 0
    found = json.loads(printed)
    by: dict[tuple[str, str], float] = {
        (each["variant"], each["unit"]): each["value"] for each in found["figures"]
    }
    for variant in ("in the open", "TLS", "TLS and a role's filters"):
        assert by[variant, "notifications/s"] > 0
    for way in (
        "token",
        "certificate",
        "password, 4,096 iterations",
        "password, 50,000 iterations",
    ):
        assert by[way, "logins/s"] > 0
    assert {each["target"] for each in found["figures"]} == {
        "", "at most 30%", "at most 10%", "at least 500",
    }  # fmt: skip


def test_fuzz_is_guided_by_coverage_and_keeps_what_it_learns(octopis, tmp_path):
    words = ("--target", "link", "--inputs", "3000", "--corpus", str(tmp_path), "--json")
    status, printed, _ = octopis("bench", "fuzz", *words)
    assert status == 0
    (found,) = json.loads(printed)["targets"]
    assert found["inputs"] == 3000
    assert found["faults"] == []
    assert 0 < found["slowest_ms"] <= 10
    seeds = TARGETS["link"].seeds()
    kept = list((tmp_path / "link" / "corpus").iterdir())
    assert len(kept) == found["corpus"] > len(seeds)


def test_fuzz_tells_of_an_input_that_breaks_a_law(tmp_path):
    target = TARGETS["frames"]
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "000.bin").write_bytes(b"bad")
    (tmp_path / "found" / "001.bin").write_bytes(b"good")

    def check(data: bytes) -> None:
        if data == b"bad":
            raise KeyError("not documented")

    looked: Any = run._looked_at_again
    again: Check = check
    (fault,) = looked(target, again, tmp_path / "found")
    assert fault.data == b"bad"
    assert "KeyError" in fault.what


def test_fuzz_names_what_can_be_fuzzed(octopis):
    status, _, said = octopis("bench", "fuzz", "--target", "framez")
    assert status == 2
    assert "'framez'" in said
    assert "frames" in said


def test_fuzz_without_atheris_says_what_to_install(octopis, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "atheris" else found(name)
    )
    status, _, said = octopis("bench", "fuzz", "--target", "frames", "--inputs", "1")
    assert status == 2
    assert "atheris" in said
