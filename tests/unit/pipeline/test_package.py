import subprocess
import sys
from pathlib import Path

from octopis.pipeline.spark.session import package_to_ship, zip_package

PROGRAM = """
import octopis
from octopis.core.filters import parse_filter
from octopis.pipeline.scenarios import truth
print(octopis.__file__, parse_filter("x > 1").matches({"x": 2}))
"""


def test_zip_alone_is_enough_to_parse_and_match(tmp_path: Path):
    archive = zip_package(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [f"{archive}/octopis/__init__.py", "True"]


def test_package_to_ship_stays_while_the_process_runs():
    assert package_to_ship().exists()
    assert package_to_ship() == package_to_ship()
