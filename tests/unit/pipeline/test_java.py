from pathlib import Path

import pytest

from octopis.errors import SparkUnavailable
from octopis.pipeline.spark.java import check_java, java_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_202"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("nonsense", None),
    ],
)
def test_version_is_read_in_old_and_new_style(text: str, version: int | None):
    assert java_version(text) == version


def test_java_of_this_machine_will_do():
    assert check_java() >= 17


def test_missing_java_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=r"none on the PATH: install Java 17 or newer"):
        check_java()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'java version \"1.8.0_202\"' >&2", "is Java 8, too old for Spark: install Java 17"),
        ("echo hello", "tells no version"),
    ],
)
def test_java_that_will_not_do_is_named(
    script: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=message):
        check_java()


def test_java_home_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="does not run"):
        check_java()
