import asyncio
import json
from contextlib import asynccontextmanager

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer

from espnet_ext import SimulSession, load_model
from espnet_ext.config import make_config
from espnet_ext.live.limits import Limits
from espnet_ext.live.server import Server

OPTIONS = dict(policy="hold_n", hold_n=0)


@pytest.fixture(scope="session")
def lively_paths(tmp_path_factory):
    from tiny_model import write_model

    return write_model(tmp_path_factory.mktemp("lively"), seed=3)


@pytest.fixture(scope="session")
def lively(lively_paths):
    """A tiny model whose text depends on the audio and comes a little at a time."""
    return load_model(**lively_paths)


@pytest.fixture(scope="session")
def pcm(speech):
    """Seconds -> 16-bit samples."""
    return lambda seconds, seed=0: np.round(speech(seconds, seed) * 2**15).astype("<i2")


@pytest.fixture(scope="session")
def alone(lively):
    """Samples -> the finished session that has them to itself."""

    def translate(samples, **options):
        session = SimulSession(lively, **OPTIONS | options)
        session.push(samples.astype(np.float32) / 2**15)
        session.finish()
        return session

    return translate


class Client:
    """A client of the server: sends, and collects what it is sent."""

    def __init__(self, socket):
        self.socket = socket
        self.messages = []

    async def send(self, samples, cut=None):
        data = samples.tobytes()
        for begin in range(0, len(data), cut or len(data)):
            await self.socket.send_bytes(data[begin : begin + (cut or len(data))])

    async def say(self, **message):
        await self.socket.send_json(message)

    async def read_until(self, key):
        """Messages up to the first that has `key`; the last one, or None when the socket closes before."""
        async with asyncio.timeout(30):
            async for message in self.socket:
                self.messages.append(json.loads(message.data))
                if key in self.messages[-1]:
                    return self.messages[-1]
        return None

    async def finish(self):
        await self.say(end_of_stream=True)
        assert await self.read_until("end_of_processing"), self.messages
        return self.text

    @property
    def text(self):
        return "".join(message.get("new", "") for message in self.messages)

    @property
    def words(self):
        return [word for message in self.messages for word in message.get("words", [])]


class Served:
    """A server and clients of it."""

    def __init__(self, http, server):
        self.http = http
        self.server = server

    async def connect(self, **arguments):
        return Client(await self.http.ws_connect(arguments.pop("path", "/"), **arguments))

    async def sessions(self):
        return (await (await self.http.get("/health")).json())["sessions"]

    async def wait_for_sessions(self, count):
        async with asyncio.timeout(10):
            while await self.sessions() != count:
                await asyncio.sleep(0.01)


@pytest.fixture
def serve(lively):
    """Runs a coroutine function with a server of the lively model."""

    @asynccontextmanager
    async def serving(limits, options):
        server = Server(lively, make_config(OPTIONS | options), limits)
        async with TestClient(TestServer(server.app())) as http:
            yield Served(http, server)

    def run(scenario, limits=None, **options):
        async def main():
            async with serving(limits or Limits(), options) as served:
                return await scenario(served)

        return asyncio.run(main())

    return run
