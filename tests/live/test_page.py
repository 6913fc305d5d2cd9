"""The page in a real browser: what it shows is the translation, and it only grows."""

import asyncio
import base64
import re

import numpy as np
import pytest
import soundfile
import soxr
from browser import browser, executable
from command import served

from espnet_ext import SimulSession

STATE = "document.getElementById('state').dataset.state"
SUBTITLES = """
import('./subtitles.js').then(({ cues, srt, vtt }) => {
  const words = [['ein', 900], ['Satz.', 1500], ['A<B', 61500]].map(([text, delay_ms]) => ({ text, delay_ms }));
  return [srt(cues(words, ' ')), vtt(cues(words, ' '))];
})
"""
RECORD = """
window.seen = [];
new MutationObserver(() => {
  const pieces = [...document.querySelectorAll('.piece')];
  seen.push(pieces.map((p) => p.firstChild.textContent + p.children[0].textContent).join(''));
}).observe(document.getElementById('committed'), { childList: true, subtree: true })
"""

KEEP_SENT = """
window.sent = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  if (typeof data === 'string') window.rate ??= JSON.parse(data).sample_rate;
  else sent.push(...data);
  send.call(this, data);
}
"""
SENT = """
btoa(new Uint8Array(Int16Array.from(sent).buffer).reduce((text, byte) => text + String.fromCharCode(byte), ''))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(executable() is None, reason="no chromium: tests/browser.sh installs it"),
]


@pytest.fixture
def wav(tmp_path, pcm):
    path = tmp_path / "speech.wav"
    soundfile.write(path, pcm(6), 16000)
    return path


def show(paths, tmp_path, scenario, microphone=None, options=("--policy=hold_n", "--hold_n=0")):
    """Run a coroutine function with a page of the served model; what it returns."""

    async def main():
        async with served(paths, *options) as address, browser(tmp_path / "profile", microphone) as page:
            await page.open(address)
            await page.value(RECORD)
            return await scenario(page)

    return asyncio.run(main())


@pytest.mark.parametrize("pace", ["spoken", "fast"])
def test_a_file_is_shown_as_it_is_decoded_alone_and_grows_only(lively_paths, alone, pcm, wav, tmp_path, pace):
    async def scenario(page):
        await page.click(f"[value={pace}]")
        await page.choose_file("#file", wav)
        await page.wait_for(f"{STATE} === 'done'")
        await page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
        for kind in ("txt", "srt", "vtt"):
            await page.click(f"#save-{kind}")
            while not (tmp_path / f"translation.{kind}").exists():
                await asyncio.sleep(0.05)
        return await page.value("seen"), await page.value("document.getElementById('figures').textContent")

    seen, figures = show(lively_paths, tmp_path, scenario)
    assert seen[-1] == alone(pcm(6)).text
    assert all(later.startswith(earlier) for earlier, later in zip(seen, seen[1:], strict=False))
    assert len(set(seen)) > 3
    assert figures.startswith(f"6.0 s of audio · {len(seen[-1].split())} words")
    txt, srt, vtt = ((tmp_path / f"translation.{kind}").read_text(encoding="utf-8") for kind in ("txt", "srt", "vtt"))
    assert txt == f"{seen[-1]}\n"
    assert re.match(r"1\n00:00:0\d,\d{3} --> 00:00:\d\d,\d{3}\n", srt)
    assert vtt.startswith("WEBVTT\n\n00:00:0")
    assert " ".join(re.sub(r"^\d.*", "", srt, flags=re.MULTILINE).split()) == seen[-1]


@pytest.mark.parametrize("pauses", [True, False])
def test_a_pause_ends_a_sentence_if_it_shall(lively_paths, lively, pcm, tmp_path, pauses):
    samples = np.concatenate([pcm(2), np.zeros(12800, np.int16), pcm(2, 1)])
    soundfile.write(tmp_path / "pause.wav", samples, 16000)

    async def scenario(page):
        await page.click("[value=fast]")
        await page.value(f"document.getElementById('pauses').checked = {str(pauses).lower()}")
        await page.choose_file("#file", tmp_path / "pause.wav")
        await page.wait_for(f"{STATE} === 'done'")
        return await page.value("seen.at(-1)")

    session = SimulSession(lively, policy="hold_n", hold_n=0)
    before, after = np.split(samples.astype(np.float32) / 2**15, [40000])
    session.push(before)
    if pauses:
        session.flush()
    session.push(after)
    session.finish()
    assert show(lively_paths, tmp_path, scenario) == session.text


def test_what_the_microphone_hears_is_shown_as_it_is_decoded_alone(lively_paths, alone, wav, tmp_path):
    async def scenario(page):
        await page.value(KEEP_SENT)
        await page.value("document.getElementById('pauses').checked = false")
        await page.click("#microphone")
        await page.wait_for("document.querySelectorAll('.piece').length > 3")
        await page.click("#stop")
        await page.wait_for(f"{STATE} === 'done'")
        return await page.value("seen.at(-1)"), await page.value(SENT), await page.value("rate")

    shown, sent, rate = show(lively_paths, tmp_path, scenario, wav)
    samples = np.frombuffer(base64.b64decode(sent), "<i2")
    assert len(samples) > rate
    heard = soxr.ResampleStream(rate, 16000, 1, dtype="float32").resample_chunk(samples / np.float32(2**15), last=True)
    assert shown == alone(heard * np.float32(2**15)).text


def test_the_text_can_be_copied(lively_paths, wav, tmp_path):
    async def scenario(page):
        await page.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        await page.click("[value=fast]")
        await page.choose_file("#file", wav)
        await page.wait_for(f"{STATE} === 'done'")
        await page.click("#copy")
        await page.wait_for("document.getElementById('copy').textContent === 'Copied'")
        return await page.value("seen.at(-1)"), await page.value("navigator.clipboard.readText()")

    shown, copied = show(lively_paths, tmp_path, scenario)
    assert shown and copied == shown


def test_subtitles_can_be_read(lively_paths, tmp_path):
    async def scenario(page):
        return await page.value(SUBTITLES)

    srt, vtt = show(lively_paths, tmp_path, scenario)
    assert srt == "1\n00:00:00,900 --> 00:00:01,900\nein Satz.\n\n2\n00:01:01,500 --> 00:01:02,500\nA<B\n"
    assert vtt == "WEBVTT\n\n00:00:00.900 --> 00:00:01.900\nein Satz.\n\n00:01:01.500 --> 00:01:02.500\nA&lt;B\n"


def test_the_microphone_is_translated_until_it_is_stopped(lively_paths, wav, tmp_path):
    async def scenario(page):
        await page.click("#microphone")
        await page.wait_for("document.querySelectorAll('.piece').length > 1")
        await page.value("document.getElementById('tune').value = 3; document.getElementById('tune').onchange()")
        await page.click("#flush")
        await asyncio.sleep(1)
        before = await page.value("seen.at(-1)")
        await page.click("#stop")
        await page.wait_for(f"{STATE} === 'done'")
        assert await page.value("document.getElementById('error').hidden")
        return before, await page.value("seen")

    before, seen = show(lively_paths, tmp_path, scenario, wav)
    assert all(later.startswith(earlier) for earlier, later in zip(seen, seen[1:], strict=False))
    assert seen[-1].startswith(before) and len(seen[-1]) > len(before) > 0


def test_what_goes_wrong_is_said(lively_paths, wav, tmp_path):
    (tmp_path / "notes.txt").write_text("no audio")
    error = "document.getElementById('error-text').textContent"

    async def scenario(page):
        await page.choose_file("#file", tmp_path / "notes.txt")
        await page.wait_for(f"{STATE} === 'failed'")
        said = [await page.value(error)]
        await page.value("WebSocket.prototype.send = function () { this.close(); }")
        await page.choose_file("#file", wav)
        await page.wait_for(f"{error}.includes('connection')")
        return [*said, await page.value(error)]

    unreadable, lost = show(lively_paths, tmp_path, scenario)
    assert unreadable == "notes.txt is not audio that this browser can read."
    assert lost == "The connection was lost. The text so far is kept."
