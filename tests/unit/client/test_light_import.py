"""An application that connects loads little: no routing, no arrays, nothing of the pipeline."""

import subprocess
import sys

import pytest

HEAVY = (
    "numpy",
    "octopis.core.routing",
    "octopis.core.matching",
    "octopis.core.topology",
    "octopis.broker",
    "pyspark",
    "matplotlib",
    "pyarrow",
    "pandas",
)
PROGRAM = f"""
import sys
import octopis
{{use}}
print(*(name for name in {HEAVY} if name in sys.modules))
"""


@pytest.mark.parametrize(
    "use",
    [
        "octopis.connect",
        "octopis.connect_sync",
        "import asyncio\n"
        "async def make():\n"
        "    octopis.connect('octopis://127.0.0.1:1').subscribe('price > 50', dialect='sql')\n"
        "asyncio.run(make())",
    ],
)
def test_client_loads_nothing_heavy(use: str):
    program = PROGRAM.format(use=use)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == ([], "")
