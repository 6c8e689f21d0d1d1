"""A real standalone Spark: a master and two workers on loopback, from the installed pyspark."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

HOST = "127.0.0.1"
_UP_S = 60


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Start the cluster, give its address, and stop every process of it whatever happens."""
    port = _free_port()
    url = f"spark://{HOST}:{port}"
    with ExitStack() as stack:
        master = ("master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0")
        _start(stack, folder, "master", *master)
        for number in range(2):
            work = folder / f"worker{number}"
            work.mkdir()
            options = ("--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", "1g")
            worker = ("worker.Worker", *options, "--work-dir", str(work), url)
            _start(stack, folder, f"worker{number}", *worker)
        log = folder / "master.log"
        until = time.monotonic() + _UP_S
        while log.read_text(encoding="utf-8").count("Registering worker") < 2:
            assert time.monotonic() < until, log.read_text(encoding="utf-8")
            time.sleep(0.1)
        yield url


def _start(stack: ExitStack, folder: Path, name: str, kind: str, *options: str) -> None:
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_NO_DAEMONIZE": "1",
    }
    # Workers know nothing of where the package under test is.
    environment.pop("PYTHONPATH", None)
    log = stack.enter_context((folder / f"{name}.log").open("wb"))
    process = subprocess.Popen(
        [home / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *options],
        env=environment,
        cwd=folder,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    stack.callback(_stop, process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
