"""Is there a Java that Spark can run on? One sentence if not."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from octopis.errors import SparkUnavailable

VERSION_MIN = 17
_HOW = "install Java 17 or newer (openjdk-17-jre-headless on Debian) or set JAVA_HOME"


def check_java() -> int:
    """Return the version of the Java that Spark will start, or raise SparkUnavailable."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if command is None:
        raise SparkUnavailable(f"Spark needs Java, and there is none on the PATH: {_HOW}")
    try:
        told = subprocess.run(  # noqa: S603 - the user's own Java
            [command, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise SparkUnavailable(f"Spark needs Java, and {command} does not run: {_HOW}") from failure
    version = java_version(told.stderr + told.stdout)
    if version is None:
        raise SparkUnavailable(f"Spark needs Java, and {command} tells no version: {_HOW}")
    if version < VERSION_MIN:
        raise SparkUnavailable(f"{command} is Java {version}, too old for Spark: {_HOW}")
    return version


def java_version(text: str) -> int | None:
    """Return the major version in what `java -version` prints; 8 for the old style 1.8."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None
