import os
import socket
from pathlib import Path

import pytest

from octopis.errors import InvalidConfiguration, SparkUnavailable
from octopis.pipeline.ingest.ingest import SPARK_SETTINGS
from octopis.pipeline.spark.settings import (
    JAVA_OPTIONS,
    MEMORY,
    SETTINGS,
    check_master,
    effective_settings,
    parse_conf,
    parse_properties,
)

CODEC = "spark.sql.parquet.compression.codec"


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Let the user's spark-defaults.conf say something."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    def write(*lines: str) -> None:
        (tmp_path / "spark-defaults.conf").write_text("\n".join(lines), encoding="utf-8")

    return write


@pytest.mark.usefixtures("say")
def test_without_a_file_and_flags_our_own_settings_hold():
    found = effective_settings(None, {}, {})
    assert (found.master, found.memory, found.java_options) == ("local[*]", "4g", "")
    assert SETTINGS.items() <= found.passed.items()


@pytest.mark.usefixtures("say")
def test_partitions_follow_this_machine_only_where_the_work_is_done_here():
    """On a cluster Spark's own default holds, which it fits to what it finds there."""
    key = "spark.sql.shuffle.partitions"
    assert key in effective_settings("local[2]", {}, {}).passed
    assert key not in effective_settings("k8s://host:7077", {}, {}).passed
    assert effective_settings("local[2]", {key: "3"}, {}).passed[key] == "3"


def test_flags_win_over_the_users_file_which_wins_over_ours(say):
    say(f"{MEMORY} 9g", f"{CODEC}=gzip", f"{JAVA_OPTIONS} -Dx=1", "spark.master local[3]")
    found = effective_settings(None, {}, {MEMORY: "1g", "spark.a": "b"})
    assert (found.master, found.memory, found.java_options) == ("local[3]", "9g", "-Dx=1")
    assert found.passed["spark.a"] == "b"
    assert not {MEMORY, CODEC} & found.passed.keys(), "Spark reads its file itself"

    found = effective_settings("local[1]", {MEMORY: "2g", JAVA_OPTIONS: "-Dx=2"}, {MEMORY: "1g"})
    assert (found.master, found.memory, found.java_options) == ("local[1]", "2g", "-Dx=2")
    assert (found.passed[MEMORY], found.passed["spark.master"]) == ("2g", "local[1]")


def test_defaults_of_one_session_win_over_those_of_all(say):
    say()
    assert effective_settings(None, {}, {MEMORY: "1g"}).passed[MEMORY] == "1g"


def test_address_in_the_users_file_that_makes_no_sense_is_named_with_its_file(say, tmp_path: Path):
    say("spark.master local4")
    with pytest.raises(InvalidConfiguration, match=r"'local4' \(spark.master in .*defaults.conf\)"):
        effective_settings(None, {}, {})
    (tmp_path / "spark-defaults.conf").write_bytes(b"\xff")
    with pytest.raises(InvalidConfiguration, match="cannot read"):
        effective_settings(None, {}, {})


def test_properties_are_read_as_java_writes_them():
    text = """
# a remark
! another
spark.a  1
spark.b=2 = 2
spark.c : 3
  spark.d\t4 5
spark.e 6,\\
    7
other.f 8
spark.empty=
"""
    assert parse_properties(text) == {
        "spark.a": "1",
        "spark.b": "2 = 2",
        "spark.c": "3",
        "spark.d": "4 5",
        "spark.e": "6,7",
        "spark.empty": "",
    }


def test_conf_is_key_and_value_and_the_last_one_counts():
    found = parse_conf(["spark.a=1", "spark.b= x=y ", "spark.a=2"])
    assert found == {"spark.a": "2", "spark.b": "x=y"}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("spark.a", "not 'spark.a'"),
        ("=1", "not '=1'"),
        ("driver.memory=1g", r"such as spark\.driver\.memory=8g, not 'driver\.memory=1g'"),
        ("spark.master=yarn", "say --master yarn instead of --conf spark.master=yarn"),
    ],
)
def test_conf_that_makes_no_sense(word: str, said: str):
    with pytest.raises(InvalidConfiguration, match=said):
        parse_conf([word])


@pytest.mark.parametrize(
    "master",
    ["local", "local[2]", "local[*]", "local[ 2 , 3 ]", "local-cluster[2,1,1024]", "k8s://x"],
)
def test_addresses_that_spark_knows(master: str):
    check_master(master)


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("local4", r"'local4'; did you mean 'local\[4\]'\?"),
        ("local(2)", r"did you mean 'local\[2\]'\?"),
        ("local[0]", r"say local\[N\], spark://HOST:PORT"),
        ("locla[2]", r"say local\[N\], spark://HOST:PORT"),
        ("sc://h:15002", "say SPARK_REMOTE=sc://h:15002 before"),
        ("spark://host", "is not spark://HOST:PORT"),
        ("spark://host:99999", "is not spark://HOST:PORT"),
    ],
)
def test_addresses_where_no_spark_can_be(master: str, said: str):
    with pytest.raises(InvalidConfiguration, match=said):
        check_master(master)


def test_master_must_answer_or_one_of_several():
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(SparkUnavailable, match=rf"no Spark answers at spark://127.0.0.1:{port}: "):
        check_master(f"spark://127.0.0.1:{port}")


def test_yarn_needs_its_files(say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    say()
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidConfiguration, match="set HADOOP_CONF_DIR or YARN_CONF_DIR to the"):
        check_master("yarn")
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path / "gone"))
    with pytest.raises(InvalidConfiguration, match=r"YARN_CONF_DIR is .*gone, no folder"):
        check_master("yarn")
    monkeypatch.setenv("YARN_CONF_DIR", os.fspath(tmp_path))
    check_master("yarn")
    monkeypatch.delenv("YARN_CONF_DIR")
    (tmp_path / "spark-env.sh").touch()  # which Spark runs first, and may set them
    check_master("yarn")


def test_what_the_user_wants_of_java_takes_the_place_of_what_ingest_wants(say):
    ours = SPARK_SETTINGS[JAVA_OPTIONS]
    assert effective_settings(None, {}, SPARK_SETTINGS).java_options == ours
    given = {JAVA_OPTIONS: "-XX:+UseG1GC"}  # Java does not start with two collectors
    assert effective_settings(None, given, SPARK_SETTINGS).java_options == "-XX:+UseG1GC"
    say(f"{JAVA_OPTIONS} -XX:+UseZGC")
    assert effective_settings(None, {}, SPARK_SETTINGS).java_options == "-XX:+UseZGC"
