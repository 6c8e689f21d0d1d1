"""Real Sparks on loopback, from the installed pyspark.

A standalone cluster of a master and two workers, and a server of Spark Connect.
"""

import os
import socket
import subprocess
import sys
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
        master = ("deploy.master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0")
        _start(stack, folder, "master", *master)
        for number in range(2):
            work = folder / f"worker{number}"
            work.mkdir()
            options = ("--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", "1g")
            worker = ("deploy.worker.Worker", *options, "--work-dir", str(work), url)
            _start(stack, folder, f"worker{number}", *worker)
        log = folder / "master.log"
        until = time.monotonic() + _UP_S
        while log.read_text(encoding="utf-8").count("Registering worker") < 2:
            assert time.monotonic() < until, log.read_text(encoding="utf-8")
            time.sleep(0.1)
        yield url


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a server of Spark Connect with two cores, give its address, and stop it at the end."""
    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": HOST,
        "spark.sql.shuffle.partitions": "3",
        "spark.ui.enabled": "false",
    }
    words = [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer")
    with ExitStack() as stack:
        submit = ("deploy.SparkSubmit", "--master", "local[2]", *words, *server, "spark-internal")
        _start(stack, folder, "server", *submit)
        until = time.monotonic() + _UP_S
        while not _answers(port):
            log = (folder / "server.log").read_text(encoding="utf-8")
            assert time.monotonic() < until, log
            time.sleep(0.1)
        yield f"sc://{HOST}:{port}"


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _start(stack: ExitStack, folder: Path, name: str, kind: str, *options: str) -> None:
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "1g" if name == "server" else "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    # Workers know nothing of where the package under test is.
    environment.pop("PYTHONPATH", None)
    log = stack.enter_context((folder / f"{name}.log").open("wb"))
    process = subprocess.Popen(
        [home / "bin" / "spark-class", f"org.apache.spark.{kind}", *options],
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
