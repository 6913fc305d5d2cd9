"""The page in a real browser: what it shows is the translation, and it only grows."""

import asyncio
import base64
import re

import aiohttp
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
window.said = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  if (typeof data === 'string') said.push(data);
  else if (!said.at(-1).includes('end_of_stream')) sent.push(...data);
  send.call(this, data);
}
"""
SENT = """
btoa(new Uint8Array(Int16Array.from(sent).buffer).reduce((text, byte) => text + String.fromCharCode(byte), ''))
"""
KEEP_HEARD = """
window.heard = [];
window.AudioWorkletNode = class extends AudioWorkletNode {
  constructor(...settings) {
    super(...settings);
    this.port.addEventListener('message', ({ data }) => data && heard.push(...data));
  }
};
true
"""
SLOW_NETWORK = """
let asked = 0;
Object.defineProperty(WebSocket.prototype, 'bufferedAmount', { get: () => (++asked % 9 ? 1e9 : 0) });
true
"""
DROP = """
const file = new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], 'speech.wav', { type: 'audio/wav' });
const dataTransfer = new DataTransfer();
dataTransfer.items.add(file);
const paper = document.getElementById('paper');
const happens = (kind) => paper.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
happens('dragover');
const marked = paper.matches('.dropping');
happens('drop');
[marked, paper.matches('.dropping')]
"""
SHOWN = "['committed', 'unstable'].map((id) => document.getElementById(id).innerText.trim())"
COLOURS = "['committed', 'unstable'].map((id) => getComputedStyle(document.getElementById(id)).color)"
DELAYS = "[...document.querySelectorAll('.piece small')].filter((e) => e.offsetWidth).map((e) => e.innerText)"
BESIDE = """
[...document.querySelectorAll('body *')].filter((element) => {
  const { left, right, width } = element.getBoundingClientRect();
  return width && (left < 0 || right > 390 || (element.offsetWidth && element.scrollWidth > element.offsetWidth + 1));
}).map((element) => element.id || element.outerHTML)
"""
ELSEWHERE = """
new Promise((resolve) => {
  document.addEventListener('securitypolicyviolation', ({ blockedURI }) => resolve(blockedURI));
  document.body.append(Object.assign(new Image(), { src: 'http://127.0.0.1:9/picture.png' }));
})
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
        return (
            await page.value("seen.at(-1)"),
            await page.value(SENT),
            await page.value("JSON.parse(said[0]).sample_rate"),
        )

    shown, sent, rate = show(lively_paths, tmp_path, scenario, wav)
    samples = np.frombuffer(base64.b64decode(sent), "<i2")
    assert len(samples) > rate
    heard = soxr.ResampleStream(rate, 16000, 1, dtype="float32").resample_chunk(samples / np.float32(2**15), last=True)
    assert shown == alone(heard * np.float32(2**15)).text


def test_what_the_microphone_hears_is_sent_whole_and_in_order_over_a_slow_network(lively_paths, wav, tmp_path):
    async def scenario(page):
        for script in (KEEP_SENT, KEEP_HEARD, SLOW_NETWORK):
            await page.value(script)
        await page.click("#microphone")
        await page.wait_for("heard.length > 60000")
        await page.click("#stop")
        await page.wait_for(f"{STATE} === 'done'")
        heard, sent = await page.value("heard.map((x) => Math.round(x * 32768))"), await page.value("[...sent]")
        return heard, sent

    heard, sent = show(lively_paths, tmp_path, scenario, wav)
    assert len(set(heard)) > 100
    assert sent == heard


def test_a_file_that_is_dropped_is_translated(lively_paths, alone, pcm, wav, tmp_path):
    async def scenario(page):
        await page.click("[value=fast]")
        await page.value(f"window.content = '{base64.b64encode(wav.read_bytes()).decode()}'")
        marked = await page.value(DROP)
        await page.wait_for(f"{STATE} === 'done'")
        return marked, await page.value("seen.at(-1)")

    assert show(lively_paths, tmp_path, scenario) == ([True, False], alone(pcm(6)).text)


def test_while_one_speaks_grey_text_is_shown_after_what_only_grows(lively_paths, wav, tmp_path):
    async def scenario(page):
        await page.click("#microphone")
        shown = []
        while len({committed for committed, unstable in shown if unstable}) < 4:
            shown.append(await page.value(SHOWN))
        colours = await page.value(COLOURS)
        await page.click("#stop")
        await page.wait_for(f"{STATE} === 'done'")
        return [*shown, await page.value(SHOWN)], colours

    shown, (black, grey) = show(lively_paths, tmp_path, scenario, wav, ("--policy=hold_n", "--hold_n=3"))
    committed = [black for black, _ in shown]
    assert all(later.startswith(earlier) for earlier, later in zip(committed, committed[1:], strict=False))
    assert shown[-1][0] and shown[-1][1] == ""
    assert black != grey


def test_delays_are_shown_if_they_shall(lively_paths, alone, pcm, wav, tmp_path):
    async def scenario(page):
        await page.click("[value=fast]")
        await page.choose_file("#file", wav)
        await page.wait_for(f"{STATE} === 'done'")
        hidden = await page.value(DELAYS)
        await page.click("#show-delays")
        return hidden, await page.value(DELAYS)

    hidden, delays = show(lively_paths, tmp_path, scenario)
    assert hidden == []
    assert all(re.fullmatch(r"\d+\.\d s", delay) for delay in delays)
    expected = [delay / 1000 for delay in dict.fromkeys(alone(pcm(6)).delays)]
    assert [float(delay[:-2]) for delay in delays] == pytest.approx(expected, abs=0.051)


@pytest.mark.parametrize("focus", ["paper", "tune"])
def test_keys_do_what_buttons_do(lively_paths, wav, tmp_path, focus):
    async def scenario(page):
        await page.value(KEEP_SENT)
        await page.value("document.getElementById('file').click = () => { window.chosen = true; }")
        await page.value(f"document.getElementById('{focus}').focus()")
        await page.press("o")
        assert await page.value("chosen")
        await page.press("m")
        await page.wait_for("document.querySelectorAll('.piece').length > 1")
        await page.press("n")
        assert await page.value("said.at(-1)") == '{"flush":true}'
        await page.press("S")
        await page.wait_for(f"{STATE} === 'done'")

    show(lively_paths, tmp_path, scenario, wav)


def test_the_slider_changes_the_policy_by_keys_before_and_during_a_translation(lively_paths, alone, pcm, wav, tmp_path):
    async def scenario(page):
        await page.value(KEEP_SENT)
        await page.value("document.getElementById('tune').focus()")
        label = "document.getElementById('tune-value').textContent"
        labels = [await page.value(label)]
        await page.press("ArrowRight", 39)
        labels.append(await page.value(label))
        await page.choose_file("#file", wav)
        await page.wait_for("document.querySelectorAll('.piece').length > 1")
        before = await page.value("said.filter((text) => text.includes('tune'))")
        await page.press("End", 35)
        labels.append(await page.value(label))
        after = await page.value("said.at(-1)")
        pieces = await page.value("document.querySelectorAll('.piece').length")
        await page.wait_for(f"{STATE} === 'done'")
        return labels, before, after, pieces, await page.value("document.querySelectorAll('.piece').length")

    labels, before, after, pieces, all_pieces = show(lively_paths, tmp_path, scenario)
    assert labels == ["0 tokens held back", "1 token held back", "16 tokens held back"]
    assert before == ['{"tune":{"hold_n":1}}'] and after == '{"tune":{"hold_n":16}}'
    assert pieces < all_pieces <= pieces + 2 < len(set(alone(pcm(6), hold_n=1).delays))  # held back to the end


def test_on_a_telephone_nothing_is_beside_the_screen(lively_paths, wav, tmp_path):
    async def scenario(page):
        await page.open(await page.value("location.href"), width=390, height=844)
        beside = await page.value(BESIDE)
        await page.click("#show-delays")
        await page.choose_file("#file", wav)
        await page.wait_for("document.querySelectorAll('.piece').length > 1")
        beside += await page.value(BESIDE)
        await page.wait_for(f"{STATE} === 'done'")
        await page.choose_file("#file", tmp_path / "notes.txt")
        await page.wait_for(f"{STATE} === 'failed'")
        return beside + await page.value(BESIDE), await page.value("document.documentElement.scrollWidth")

    (tmp_path / "notes.txt").write_text("no audio")
    assert show(lively_paths, tmp_path, scenario) == ([], 390)


def test_the_page_loads_nothing_from_elsewhere(lively_paths, wav, tmp_path):
    async def scenario(page):
        await page.click("#microphone")
        await page.wait_for("document.querySelectorAll('.piece').length > 0")
        loaded = await page.value("performance.getEntriesByType('resource').map(({ name }) => name)")
        return await page.value("location.href"), loaded, await page.value(ELSEWHERE)

    address, loaded, refused = show(lively_paths, tmp_path, scenario, wav)
    assert {name.removeprefix(address) for name in loaded} >= {"page.css", "page.js", "audio.js", "info"}
    assert all(name.startswith((address, "data:")) for name in loaded)
    assert refused == "http://127.0.0.1:9/picture.png"


def test_a_refusal_leaves_the_text_that_is_there(lively_paths, alone, pcm, wav, tmp_path):
    async def scenario(page):
        await page.click("[value=fast]")
        await page.choose_file("#file", wav)
        await page.wait_for(f"{STATE} === 'done'")
        async with aiohttp.ClientSession() as http, http.ws_connect(await page.value("location.href")) as other:
            await other.send_json({"extended": True, "flush": True})
            await other.receive()
            await page.choose_file("#file", wav)
            await page.wait_for(f"{STATE} === 'failed'")
            error = await page.value("document.getElementById('error-text').textContent")
            kept = await page.value(SHOWN), await page.value("document.getElementById('save-txt').offsetWidth > 0")
        await asyncio.sleep(0.5)
        await page.choose_file("#file", wav)
        await page.wait_for(f"{STATE} === 'done'")
        return error, kept, await page.value(SHOWN)

    options = ("--policy=hold_n", "--hold_n=0", "--max_sessions=1")
    error, kept, again = show(lively_paths, tmp_path, scenario, options=options)
    assert error == "The server says: all 1 sessions are in use; try again later"
    assert kept == ([alone(pcm(6)).text, ""], True)
    assert again == kept[0]


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
