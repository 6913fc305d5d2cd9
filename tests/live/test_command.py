"""The command that serves, and simulstream's own client and server."""

import asyncio
import json
import os
import socket
import sys

import aiohttp
import numpy as np
import pytest
import soundfile
import yaml
from command import ROOT, served

from espnet_ext.bin import serve
from espnet_ext.errors import UserError

PEERS = ROOT / ".venv.peers"
DEBUGGED_CLIENT = "import simulstream.client.wav_reader_client as c; c.LOGGER.setLevel('DEBUG'); c.cli_main()"
OPTIONS = ("--policy=hold_n", "--hold_n=0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max_sessions=0"], "max_sessions: must be at least 1"),
        (["--max_message_bytes=1"], "max_message_bytes: must be at least 1024"),
        (["--idle_timeout_s=nan"], "idle_timeout_s: must be above 0"),
        (["--max_sentence_s=0"], "max_sentence_s: must be above 0"),
        (["--search=offline"], "search: offline says nothing before the end"),
        (["--token="], "token: is empty"),
        (["--hold_n=-1"], "hold_n: must be at least 0"),
        (["--host=300.0.0.1"], "host, port: cannot listen on 300.0.0.1:"),
        (["--port=70000"], "host, port: cannot listen on 127.0.0.1:70000"),
        (["--policy=align_att", "--align_att_layer=9"], "align_att_layer: 9 is above"),
    ],
)
def test_an_option_that_cannot_be_is_named(lively_paths, options, message):
    with pytest.raises(UserError, match=message):
        serve.main([*(f"--{key}={value}" for key, value in lively_paths.items()), *options])


def test_a_missing_server_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(UserError, match=r"pip install 'espnet-ext\[serve\]'"):
        serve.main([])


def test_a_port_that_is_taken_is_named(lively_paths):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UserError, match="cannot listen on"):
        port = taken.getsockname()[1]
        serve.main([*(f"--{key}={value}" for key, value in lively_paths.items()), f"--port={port}"])


def test_the_policy_can_be_tuned_unless_the_options_say_otherwise():
    def policy(*options):
        return serve.decode_config(serve.get_parser().parse_args(options)).policy

    assert policy() == policy("--hold_n=3") == "hold_n"
    assert policy("--search=bwbs") == policy("--policy=all") == "all"


def test_the_command_serves_until_it_is_told_to_end(lively_paths, alone, pcm):
    samples = pcm(2)

    async def scenario():
        async with aiohttp.ClientSession() as http:
            async with served(lively_paths, *OPTIONS) as address:
                stream = await http.ws_connect(address)
                await stream.send_bytes(samples.tobytes())
                await stream.send_json({"end_of_stream": True})
                text = ""
                while "end_of_processing" not in (message := await stream.receive_json()):
                    text += message["new"]
            return text, await stream.receive_json()

    assert asyncio.run(scenario()) == (alone(samples).text, {"error": "the server is shutting down"})


@pytest.fixture
def recordings(tmp_path, pcm):
    """A list of two files for simulstream's client, and what it sends of them: the last piece twice."""
    sent = []
    for index, seconds in enumerate((3.0, 2.0)):
        samples = pcm(seconds, index)
        soundfile.write(tmp_path / f"{index}.wav", samples, 16000)
        sent.append(np.concatenate([samples, samples[-1600:]]))
    (tmp_path / "list").write_text("0.wav\n1.wav\n")
    return tmp_path / "list", sent


async def simulstream_client(address, wav_list):
    """The texts that simulstream's client is sent, all in one."""
    arguments = ["--uri", address.replace("http", "ws"), "--wav-list-file", wav_list, "--tgt-lang", "de"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", DEBUGGED_CLIENT, *map(str, arguments)),
        env=os.environ | {"PYTHONPATH": str(PEERS)},
        stderr=asyncio.subprocess.PIPE,
    )
    _, log = await process.communicate()
    assert process.returncode == 0, f"{log.decode()}\n(tools/setup_peers.sh installs simulstream)"
    answers = [json.loads(line.split(" | ")[-1]) for line in log.decode().splitlines() if line.endswith("}")]
    return "".join(answer.get("new", "") for answer in answers)


@pytest.mark.slow
def test_simulstreams_client_is_served(lively_paths, alone, recordings):
    wav_list, sent = recordings

    async def scenario():
        async with served(lively_paths, *OPTIONS) as address:
            return await simulstream_client(address, wav_list)

    assert asyncio.run(scenario()) == "".join(alone(samples).text for samples in sent)


@pytest.mark.slow
def test_simulstreams_server_runs_our_processor(lively_paths, alone, recordings, tmp_path):
    wav_list, sent = recordings
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    metrics = dict(enabled=True, filename=str(tmp_path / "metrics.jsonl"))
    server = dict(hostname="127.0.0.1", port=port, pool_size=2, acquire_timeout=10, metrics=metrics)
    model = {key: str(value) for key, value in lively_paths.items()}
    processor = dict(type="espnet_ext.integrations.simulstream.EspnetProcessor", policy="hold_n", hold_n=0, **model)
    for name, content in (("server", server), ("processor", processor)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content))

    async def scenario():
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "simulstream.server.websocket_server"),
            *("--server-config", tmp_path / "server.yaml", "--speech-processor-config", tmp_path / "processor.yaml"),
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(PEERS), str(ROOT)])},
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async for line in process.stderr:
                if b"server listening" in line:
                    break
            return await simulstream_client(f"http://127.0.0.1:{port}/", wav_list)
        finally:
            process.terminate()
            await process.communicate()

    assert asyncio.run(scenario()) == "".join(alone(samples).text for samples in sent)
