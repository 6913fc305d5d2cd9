"""The server as a process."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


async def reading_address(process):
    """The address that a starting server says on its stderr."""
    said = []
    async for line in process.stderr:
        said.append(line.decode())
        if found := re.search(r"serving at (http://\S+)", said[-1]):
            return found[1]
    raise AssertionError("".join(said))


@asynccontextmanager
async def served(paths, *options):
    """The address of a server of a model, started by its command and ended by SIGTERM."""
    model = [f"--{key}={value}" for key, value in paths.items()]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "espnet_ext.bin.serve", *model, "--port=0", *options),
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )
    try:
        yield await reading_address(process)
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
