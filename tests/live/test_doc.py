"""Every command of docs/live.md runs, on the models that the main job has trained."""

import asyncio
import os
import re
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
import soundfile
from command import ROOT, reading_address

RECIPE = ROOT / "egs2" / "mustc_st_block"
TEXT = (ROOT / "docs" / "live.md").read_text(encoding="utf-8")
PEERS = ROOT / ".venv.peers"

pytestmark = pytest.mark.slow


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


@asynccontextmanager
async def shell(script, **settings):
    process = await asyncio.create_subprocess_exec("bash", "-euc", script, cwd=ROOT, **settings)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@pytest.fixture
def simulstream(tmp_path):
    """Runs a script beside `wavs.txt` and `processor.yaml`, with simulstream's commands."""
    recording = (RECIPE / "dump" / "dev.en-de" / "wav.scp").read_text().split("\n")[0].split()[1]
    samples, rate = soundfile.read(RECIPE / recording, dtype="int16")
    soundfile.write(tmp_path / "speech.wav", samples, rate)
    (tmp_path / "wavs.txt").write_text("speech.wav\n")
    (config,) = blocks("yaml")
    (tmp_path / "processor.yaml").write_text(config.replace("model: ", f"model: {RECIPE}/"))
    path = os.pathsep.join([os.path.dirname(sys.executable), str(PEERS / "bin"), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join([str(PEERS), str(ROOT)])}

    def run(script):
        command = ["bash", "-euc", script]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stderr}\n(tools/setup_peers.sh installs simulstream)"
        return tmp_path

    return run


def test_the_server_starts_and_serves_simulstreams_client(simulstream):
    start, client, _ = blocks("bash")
    serve = start.strip().replace("espnet-simul", "exec espnet-simul") + " --port 0"

    async def scenario():
        async with shell(serve, stderr=subprocess.PIPE) as process:
            address = await reading_address(process)
            await asyncio.to_thread(simulstream, client.replace("ws://127.0.0.1:8000/", f"ws{address[4:]}"))

    asyncio.run(scenario())


def test_simulstream_runs_our_processor(simulstream):
    directory = simulstream(blocks("bash")[2])
    assert len((directory / "instances.log").read_text(encoding="utf-8").splitlines()) == 1
