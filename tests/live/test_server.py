"""What a client of the server may rely on, on a tiny real model."""

import asyncio
import base64
import contextlib
import re
import socket

import numpy as np
import pytest
from aiohttp import WSCloseCode, WSServerHandshakeError

from espnet_ext import SimulSession
from espnet_ext.live.limits import Limits
from espnet_ext.live.server import FILES


@pytest.mark.parametrize("cut", [320, 1000, 3200, None])
def test_the_text_is_that_of_the_audio_however_it_is_cut(serve, alone, pcm, cut):
    samples = pcm(3)

    async def scenario(served):
        client = await served.connect()
        await client.say(sample_rate=16000, target_lang="de", source_lang="en", metrics_metadata={"wav_name": "a.wav"})
        await client.send(samples, cut)
        await client.finish()
        return client

    client = serve(scenario)
    assert client.text == alone(samples).text
    assert client.messages[-1] == {"end_of_processing": True}
    assert all(message.keys() == {"new", "deleted"} and not message["deleted"] for message in client.messages[:-1])
    assert len(client.messages) > 3


def test_a_client_that_asks_is_told_delays_and_what_is_unstable(serve, alone, pcm):
    samples = pcm(3)

    async def scenario(served):
        client = await served.connect()
        await client.say(extended=True)
        await client.send(samples, 3200)
        await client.finish()
        return client

    client = serve(scenario, hold_n=2)
    expected = alone(samples, hold_n=2)
    assert [word["text"] for word in client.words] == expected.units
    assert [word["delay_ms"] for word in client.words] == expected.delays
    assert any(message.get("unstable") for message in client.messages)
    *_, last, _ = client.messages
    assert last["unstable"] == "" and last["audio_ms"] == 3000 and last["lag_ms"] >= 0


def test_interleaved_clients_get_what_each_would_get_alone(serve, alone, pcm):
    streams = [pcm(3, seed) for seed in range(3)]

    async def scenario(served):
        clients = [await served.connect() for _ in streams]
        for begin in range(0, 48000, 1600):
            await asyncio.gather(
                *(client.send(samples[begin : begin + 1600]) for client, samples in zip(clients, streams, strict=True))
            )
        return await asyncio.gather(*(client.finish() for client in clients))

    texts = serve(scenario)
    assert texts == [alone(samples).text for samples in streams]
    assert len(set(texts)) == 3


def test_streams_follow_each_other_on_one_socket(serve, alone, pcm):
    async def scenario(served):
        client = await served.connect()
        texts = []
        for seed in (1, 0):
            client.messages.clear()
            await client.send(pcm(3, seed), 4000)
            texts.append(await client.finish())
        return texts

    assert serve(scenario) == [alone(pcm(3, seed)).text for seed in (1, 0)]


@pytest.mark.parametrize("rate", [8000, 44100, 48000])
def test_audio_of_any_rate_has_its_own_clock(serve, pcm, rate):
    samples = np.repeat(pcm(3), rate // 8000)[: 2 * rate]

    async def scenario(served):
        client = await served.connect()
        await client.say(sample_rate=rate, extended=True)
        await client.send(samples, 1000)
        await client.finish()
        return client.messages[-2]["audio_ms"]

    assert serve(scenario) == pytest.approx(2000, abs=0.1)


def test_a_client_that_does_not_read_loses_nothing_and_holds_up_nobody(serve, alone, pcm, monkeypatch):
    samples = pcm(3)

    async def scenario(served):
        slow = await served.connect()
        await served.wait_for_sessions(1)
        (socket,) = served.server.sockets
        read, send = asyncio.Event(), socket.send_json

        async def blocked(message):
            await read.wait()
            await send(message)

        monkeypatch.setattr(socket, "send_json", blocked)
        sending = asyncio.create_task(slow.send(samples, 320))
        await asyncio.sleep(0.2)
        other = await served.connect()
        await other.send(samples, 3200)
        text = await other.finish()
        read.set()
        await sending
        return text, await slow.finish()

    assert serve(scenario) == (alone(samples).text,) * 2


def test_a_client_that_sends_all_at_once_holds_up_nobody(serve, alone, pcm):
    long, short = np.tile(pcm(3), 4), pcm(3, 1)

    async def scenario(served):
        fast, other = await served.connect(), await served.connect()
        await fast.send(long, 2**19)
        finishing = asyncio.create_task(fast.finish())
        await other.send(short, 3200)
        text = await other.finish()
        assert not finishing.done()
        return text, await finishing

    assert serve(scenario) == (alone(short).text, alone(long).text)


FAULTS = {
    "message: not JSON": "{",
    "message: a JSON object is needed, not \\[1\\]": "[1]",
    "message: unknown key 'extnded'; known: sample_rate": '{"extnded": true}',
    "sample_rate: expected int, got '16000'": '{"sample_rate": "16000"}',
    "sample_rate: expected int, got True": '{"sample_rate": true}',
    "sample_rate: must lie in 8000 to 192000 Hz, not 4000": '{"sample_rate": 4000}',
    "sample_rate: 48000 in the middle of a stream": '{"sample_rate": 48000}',
    "message: not JSON: Exceeds": '{"sample_rate": 1%s}' % (5000 * "0"),
    "target_lang: this server has de, not 'fr'": '{"target_lang": "fr"}',
    "source_lang: this server has en, not 'fr'": '{"source_lang": "fr"}',
    "flush: expected bool, got 1": '{"flush": 1}',
    "wait_k: the policy hold_n is not tuned by it": '{"tune": {"wait_k": 2}}',
    "hold_n: expected int, got 'many'": '{"tune": {"hold_n": "many"}}',
    "hold_n: must be at least 0": '{"tune": {"hold_n": -1}}',
    "self: the policy hold_n is not tuned by it": '{"tune": {"self": 1}}',
    r"\\ud800: the policy hold_n is not tuned by it": r'{"tune": {"\ud800": 1}}',
    r"a\\nb: the policy hold_n is not tuned by it": r'{"tune": {"a\nb": 1}}',
    "x{200,300}\\.\\.\\.$": '{"tune": {"%s": 1}}' % (5000 * "x"),
    "audio: 3 bytes; 16-bit samples are needed": b"abc",
    "message: longer than 100000 bytes": b"ab" * 60000,
}


@pytest.mark.parametrize("message", FAULTS)
def test_what_cannot_be_is_said_and_frees_the_place(serve, alone, pcm, message):
    fault, samples = FAULTS[message], pcm(1)

    async def scenario(served):
        bad = await served.connect()
        await bad.send(samples)
        await (bad.socket.send_bytes(fault) if isinstance(fault, bytes) else bad.socket.send_str(fault))
        error = (await bad.read_until("error"))["error"]
        assert await bad.read_until("error") is None
        assert bad.socket.close_code in (WSCloseCode.POLICY_VIOLATION, WSCloseCode.MESSAGE_TOO_BIG)
        await served.wait_for_sessions(0)
        good = await served.connect()
        await good.send(samples)
        return error, await good.finish()

    error, text = serve(scenario, Limits(max_sessions=1, max_message_bytes=100000))
    assert re.match(message, error)
    assert text == alone(samples).text


def test_a_full_server_refuses_until_a_place_is_free(serve, alone, pcm):
    samples = pcm(1)

    async def scenario(served):
        first = await served.connect()
        await served.wait_for_sessions(1)
        second = await served.connect()
        error = await second.read_until("error")
        first.socket._response.connection.transport.abort()
        await served.wait_for_sessions(0)
        third = await served.connect()
        await third.send(samples)
        return error["error"], await third.finish()

    error, text = serve(scenario, Limits(max_sessions=1))
    assert error == "all 1 sessions are in use; try again later"
    assert text == alone(samples).text


def test_a_silent_client_is_closed(serve):
    async def scenario(served):
        client = await served.connect()
        error = await client.read_until("error")
        await served.wait_for_sessions(0)
        return error["error"]

    assert serve(scenario, Limits(idle_timeout_s=0.2)) == "nothing came for 0.2 s: the session is closed"


async def open_without_reading(url):
    """A socket that has asked for a session, with little room for what it does not read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, (url.host, url.port))
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13"
    key = base64.b64encode(bytes(16)).decode()
    request = f"GET / HTTP/1.1\r\nHost: {url.authority}\r\n{upgrade}\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    await loop.sock_sendall(client, request.encode())
    return client


def text_frame(text):
    return b"\x81" + bytes([0x80 | len(text)]) + bytes(4) + text.encode()


@pytest.mark.parametrize("ends", ["session", "client", "server"])
def test_a_client_that_never_reads_is_closed(serve, ends, caplog):
    async def scenario(served):
        loop = asyncio.get_running_loop()
        client = await open_without_reading(served.http.make_url("/"))
        await served.wait_for_sessions(1)
        (waiting,) = served.server.sockets
        connection = waiting.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        asked = text_frame('{"extended": true}') + (800 if ends == "client" else 4000) * text_frame('{"flush": true}')
        bye = b"\x88\x80" + bytes(4) if ends == "client" else b""
        sending = asyncio.create_task(loop.sock_sendall(client, asked + bye))
        if ends == "server":
            await asyncio.sleep(1)
            await served.http.server.close()
        else:
            await served.wait_for_sessions(0)
        async with asyncio.timeout(5):
            while connection.fileno() != -1:
                await asyncio.sleep(0.05)
        await asyncio.wait([sending])
        with contextlib.suppress(ConnectionError):
            while await loop.sock_recv(client, 65536):
                pass
        client.close()

    caplog.set_level("INFO")
    serve(scenario, Limits(idle_timeout_s=0.5 if ends == "session" else 60))
    assert ("answers were not read for 0.5 s" in caplog.text) == (ends == "session")


def test_a_fault_of_the_server_ends_the_session_that_has_it(serve, alone, pcm, monkeypatch):
    samples = pcm(2)

    async def scenario(served):
        first = await served.connect()
        await served.wait_for_sessions(1)
        (session,) = served.server.engine.pool.sessions
        monkeypatch.setattr(session.policy, "stable_length", lambda context: 1 // 0)
        second = await served.connect()
        for client in (first, second):
            await client.send(samples)
        error = await first.read_until("error")
        text = await second.finish()
        return error["error"], text

    assert serve(scenario) == ("the server failed; its log says how", alone(samples).text)


def test_the_policy_is_tuned_on_the_way_and_text_stays(serve, alone, pcm):
    samples = pcm(6)

    async def scenario(served):
        client = await served.connect()
        await client.say(extended=True)
        await client.send(samples[:48000], 3200)
        await client.say(tune={"hold_n": 50})
        await client.say(flush=False)
        await client.send(samples[48000:], 3200)
        await client.finish()
        return client.words

    words, untouched = serve(scenario), alone(samples)
    before = sum(delay <= 3000 for delay in untouched.delays)
    assert [word["text"] for word in words[:before]] == untouched.units[:before]
    assert {word["delay_ms"] for word in words[before:]} == {6000.0}
    assert 0 < before < len(words)


@pytest.fixture
def flushed(lively):
    """16-bit samples, where a sentence ends in them -> the finished session that had them, flushed there."""

    def translate(samples, end, **options):
        session = SimulSession(lively, **{"policy": "hold_n", "hold_n": 0} | options)
        first, second = np.split(samples.astype(np.float32) / 2**15, [end])
        session.push(first)
        session.flush()
        session.push(second)
        session.finish()
        return session

    return translate


def test_a_flush_ends_a_sentence_and_the_clock_goes_on(serve, flushed, pcm):
    samples = pcm(4)

    async def scenario(served):
        client = await served.connect()
        await client.say(extended=True)
        await client.send(samples[:32000])
        await client.say(flush=True)
        await client.send(samples[32000:])
        await client.finish()
        return client

    client, session = serve(scenario, hold_n=3), flushed(samples, 32000, hold_n=3)
    assert client.text == session.text
    assert [word["delay_ms"] for word in client.words] == session.delays


@pytest.mark.parametrize("cut", [700, 3200, None])
@pytest.mark.parametrize("pauses", [True, False])
def test_a_pause_ends_a_sentence_if_it_shall(serve, flushed, alone, pcm, pauses, cut):
    samples = np.concatenate([pcm(2), np.zeros(12800, np.int16), pcm(2, 1)])

    async def scenario(served):
        client = await served.connect()
        await client.say(pauses=pauses)
        await client.send(samples, cut)
        return await client.finish()

    assert serve(scenario) == (flushed(samples, 40000) if pauses else alone(samples)).text


def test_a_sentence_without_an_end_is_remarked_on_once(serve, pcm):
    async def scenario(served):
        client = await served.connect()
        await client.say(extended=True)
        await client.send(pcm(4), 3200)
        await client.finish()
        return [message["notice"] for message in client.messages if "notice" in message]

    (notice,) = serve(scenario, max_audio_s=1.5)
    assert "flush at a pause, or serve with --long_form true" in notice


def test_a_sentence_that_would_not_end_is_ended(serve, flushed, pcm):
    samples = pcm(4)

    async def scenario(served):
        client = await served.connect()
        await client.say(extended=True)
        await client.send(samples, 3200)
        await client.finish()
        return client

    client = serve(scenario, Limits(max_sentence_s=2.5), chunk_ms=500)
    assert client.text == flushed(samples, 48000, chunk_ms=500).text
    assert [message["notice"] for message in client.messages if "notice" in message] == [
        "3 s without the end of a sentence: one is made here"
    ]


def test_who_does_not_know_the_token_is_refused(serve):
    async def scenario(served):
        for path, headers in (("/", {}), ("/?token=no", {}), ("/", {"Authorization": "Bearer no"})):
            client = await served.connect(path=path, headers=headers)
            assert (await client.read_until("error"))["error"].startswith("token: missing or wrong")
        assert (await served.http.get("/metrics")).status == 401
        assert (await served.http.get("/health")).status == 200
        for path, headers in (
            ("/?token=secret", {}),
            ("/", {"Authorization": "Bearer secret"}),
            ("/", {"Authorization": "bearer secret"}),
        ):
            await (await served.connect(path=path, headers=headers)).finish()

    serve(scenario, Limits(token="secret"))


def test_pages_of_other_sites_are_refused(serve):
    async def scenario(served):
        own = str(served.http.make_url("/")).rstrip("/")
        for origin in ("https://elsewhere.example", "null", "http://["):
            client = await served.connect(headers={"Origin": origin})
            assert (await client.read_until("error"))["error"].startswith(f"origin: {origin} may not use")
        for origin in (own, "https://friend.example"):
            await (await served.connect(headers={"Origin": origin})).finish()

    serve(scenario, Limits(allowed_origins=["https://friend.example"]))


def test_another_name_for_this_machine_is_refused(serve):
    async def scenario(served):
        port = served.http.server.port
        for host in (f"evil.example:{port}", "localhost.evil.example", "192.168.0.7", "["):
            for path in ("/", "/page.js", "/info", "/health", "/metrics"):
                answer = await served.http.get(path, headers={"Host": host})
                assert answer.status == 403
                assert re.match(r"host: \S+ may not .* --allowed_origins .*\n$", await answer.text())
            client = await served.connect(headers={"Host": host, "Origin": f"http://{host}"})
            assert (await client.read_until("error"))["error"].startswith("host: ")
        for host in ("localhost", f"LOCALHOST:{port}", "127.0.0.1:80", "[::1]:8000", "friend.example"):
            assert (await served.http.get("/info", headers={"Host": host})).status == 200
            await (await served.connect(headers={"Host": host, "Origin": f"http://{host}"})).finish()

    serve(scenario, Limits(allowed_origins=["https://friend.example:8443"]))


def test_a_server_for_other_machines_goes_by_any_name(serve):
    async def scenario(served):
        served.server.local = False
        assert (await served.http.get("/info", headers={"Host": "server.example"})).status == 200
        await (await served.connect(headers={"Host": "server.example"})).finish()

    serve(scenario)


def test_operators_see_what_goes_on(serve, pcm):
    async def scenario(served):
        client = await served.connect()
        await client.send(pcm(3))
        await client.finish()
        bad = await served.connect()
        await bad.say(nonsense=1)
        await bad.read_until("error")
        health = await (await served.http.get("/health")).json()
        return health, await (await served.http.get("/metrics")).text()

    health, metrics = serve(scenario)
    assert health["status"] == "ok" and health["max_sessions"] == 16
    values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    assert values["espnet_simul_sessions_total"] == "2" and values["espnet_simul_refused_total"] == "1"
    assert values["espnet_simul_audio_seconds_total"] == "3.0"
    assert int(values["espnet_simul_words_total"]) > 0
    assert values['espnet_simul_lag_seconds_bucket{le="+Inf"}'] == values["espnet_simul_lag_seconds_count"]


def test_the_page_comes_whole_and_from_here_alone(serve):
    async def scenario(served):
        answers = [await served.http.get(f"/{name}") for name in ("", *FILES)]
        assert all(answer.status == 200 for answer in answers)
        assert all(answer.headers["Content-Security-Policy"].startswith("default-src 'self';") for answer in answers)
        info = await (await served.http.get("/info")).json()
        with pytest.raises(WSServerHandshakeError):
            await served.connect(path="/info")
        return "\n".join([await answer.text() for answer in answers]), info

    text, info = serve(scenario)
    assert not re.search(r"""://|["'`(]\s*//""", text)
    named = re.findall(r"""(?:src|href|action)="(.*?)"|url\((.*?)\)|(?:from|import|addModule\()\s*"(.*?)\"""", text)
    assert {"".join(names).removeprefix("./") for names in named} == {"data:,", *FILES} - {"page.html"}
    assert info["tgt_lang"] == "de"
    assert info["tune"] == {"name": "hold_n", "value": 0, "min": 0, "max": 16}


def test_clients_are_told_when_the_server_ends(serve):
    async def scenario(served):
        client = await served.connect()
        await served.wait_for_sessions(1)
        closing = asyncio.create_task(served.http.server.close())
        error = await client.read_until("error")
        code = await client.read_until("error")
        await closing
        return error, code, client.socket.close_code

    assert serve(scenario) == ({"error": "the server is shutting down"}, None, WSCloseCode.GOING_AWAY)
