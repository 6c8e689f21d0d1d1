"""What a session of Spark starts with, and who has the last word.

Flags come first (`--master`, `--conf`, what a program gives to `open_spark`), then the user's
spark-defaults.conf, then our own settings. What is wrong with an address is said here, before
seconds go by until Java has started.
"""

import os
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from octopis.errors import InvalidConfiguration, SparkUnavailable

LOCAL = "local[*]"
MASTER = "spark.master"
MEMORY = "spark.driver.memory"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"

SETTINGS = {
    "spark.app.name": "octopis",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    MEMORY: "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.parquet.compression.codec": "zstd",
}
"""What every session of ours starts with, where nobody says otherwise."""

_LOCAL_SETTINGS = {
    # Nothing leaves this machine, and the machine's own name need not be known to anyone.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # On a cluster nobody knows here how many cores there are: Spark starts from its own default
    # there, and puts partitions together to fit what it finds.
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
}
"""The same on this machine alone."""


_COUNT = r"\s*[1-9][0-9]*\s*"
_LOCAL_FORM = re.compile(rf"local(\[({_COUNT}|\s*\*\s*)(,{_COUNT})?\])?")
_SMALL_CLUSTER_FORM = re.compile(rf"local-cluster\[{_COUNT},{_COUNT},{_COUNT}\]")
_HOST_FORM = re.compile(r"(?P<host>\[[^\]]+\]|[^:,/\s]+):(?P<port>[0-9]{1,5})")
_REACH_S = 3.0
_PROPERTY = re.compile(r"([^\s=:]+)(?:\s*[=:]\s*|\s+)(.*)")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a session, resolved."""

    master: str
    memory: str
    """What Java may take at most."""
    java_options: str
    """What the user or this session wants of Java; more is added."""
    passed: dict[str, str]
    """What Spark is told; what the user's file says it reads there itself."""


def effective_settings(
    master: str | None, given: Mapping[str, str], defaults: Mapping[str, str]
) -> Settings:
    """Return a session's settings; `given` wins over the user's file, which wins over ours.

    `defaults` are ours for this one session. Raises InvalidConfiguration or SparkUnavailable where
    there can be no Spark at the address.
    """
    users, file = users_defaults()
    place = master or users.get(MASTER, LOCAL)
    check_master(place, "" if master or MASTER not in users else f" ({MASTER} in {file})")
    ours = {**SETTINGS, **(_LOCAL_SETTINGS if is_local(place) else {}), **defaults}
    known = {**ours, **users, **given}
    passed = {key: value for key, value in ours.items() if key not in users}
    return Settings(
        place, known[MEMORY], known.get(JAVA_OPTIONS, ""), {**passed, **given, MASTER: place}
    )


def is_local(master: str | None) -> bool:
    """Tell whether everything runs within one Java on this machine."""
    return (master or "").partition("[")[0] == "local"


def check_master(master: str, said_where: str = "") -> None:
    """Raise InvalidConfiguration or SparkUnavailable where no Spark can be at `master`."""
    if master.startswith("spark://"):
        _check_reachable(master, said_where)
    elif master == "yarn":
        _check_yarn(said_where)
    elif not (
        _LOCAL_FORM.fullmatch(master)
        or _SMALL_CLUSTER_FORM.fullmatch(master)
        or master.startswith("k8s://")
    ):
        raise InvalidConfiguration(f"there is no Spark at {master!r}{said_where}{_hint(master)}")


def _hint(master: str) -> str:
    cores = re.fullmatch(r"local\W*([0-9]+|\*)\W*", master)
    if cores and cores[1].strip("0"):
        return f"; did you mean 'local[{cores[1]}]'?"
    if master.startswith("sc://"):
        return f": for Spark Connect, say SPARK_REMOTE={master} before the command"
    return ": say local[N], spark://HOST:PORT, yarn or k8s://HOST:PORT"


def _check_reachable(master: str, said_where: str) -> None:
    found = [_HOST_FORM.fullmatch(each) for each in master.removeprefix("spark://").split(",")]
    places = [each for each in found if each is not None and int(each["port"]) < 65_536]
    if not places or len(places) < len(found):
        raise InvalidConfiguration(f"{master!r}{said_where} is not spark://HOST:PORT")
    reason = ""
    for place in places:
        address = place["host"].strip("[]"), int(place["port"])
        try:
            with socket.create_connection(address, _REACH_S):
                return
        except OSError as failure:
            reason = failure.strerror or str(failure)
    raise SparkUnavailable(f"no Spark answers at {master}{said_where}: {reason}")


def _check_yarn(said_where: str) -> None:
    variables = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
    folders = {name: os.environ[name] for name in variables if os.environ.get(name)}
    if not folders and not (_configuration_folder() / "spark-env.sh").exists():  # it may set them
        raise InvalidConfiguration(
            f"Spark cannot find YARN{said_where}: set HADOOP_CONF_DIR or YARN_CONF_DIR to the "
            "folder with the cluster's files (yarn-site.xml, core-site.xml)"
        )
    for name, folder in folders.items():
        if not Path(folder).is_dir():
            raise InvalidConfiguration(f"Spark cannot find YARN: {name} is {folder}, no folder")


def parse_conf(words: Iterable[str]) -> dict[str, str]:
    """Return the settings that `--conf KEY=VALUE` gives, or raise InvalidConfiguration."""
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        key = key.strip()
        if not equals or not key.startswith("spark."):
            raise InvalidConfiguration(
                f"--conf takes KEY=VALUE with one of Spark's keys, such as {MEMORY}=8g, "
                f"not {word!r}"
            )
        if key == MASTER:
            raise InvalidConfiguration(f"say --master {value} instead of --conf {word}")
        found[key] = value.strip()
    return found


def users_defaults() -> tuple[dict[str, str], Path]:
    """Return what the user's spark-defaults.conf says, if there is one, and where it is."""
    path = _configuration_folder() / "spark-defaults.conf"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, path
    except (OSError, UnicodeDecodeError) as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure}") from failure
    return parse_properties(text), path


def _configuration_folder() -> Path:
    folder = os.environ.get("SPARK_CONF_DIR")
    return Path(folder) if folder else Path(_find_spark_home()) / "conf"


def parse_properties(text: str) -> dict[str, str]:
    """Return Spark's keys and values in a file of properties, as Java writes them."""
    whole = re.sub(r"\\\r?\n[ \t]*", "", text)
    lines = (line.strip() for line in whole.splitlines())
    found = (_PROPERTY.fullmatch(line) for line in lines if line and line[0] not in "#!")
    return {each[1]: each[2] for each in found if each and each[1].startswith("spark.")}
