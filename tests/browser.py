"""A headless Chromium, driven by its DevTools protocol."""

import asyncio
import base64
import itertools
import shutil
from contextlib import asynccontextmanager

import aiohttp

SWITCHES = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update "
    "disable-sync remote-debugging-port=0 use-fake-ui-for-media-stream use-fake-device-for-media-stream"
)


def executable():
    """Its path, or None where there is none (`tests/browser.sh` installs it)."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """One tab."""

    def __init__(self, socket):
        self.socket = socket
        self.numbers = itertools.count(1)

    async def call(self, method, **parameters):
        """The result of a method of the protocol."""
        number = next(self.numbers)
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        async for message in self.socket:
            answer = message.json()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
        raise AssertionError("the browser is gone")

    async def open(self, address, width=1280, height=800, dark=False):
        """Show an address."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.call("Emulation.setEmulatedMedia", features=scheme)
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        await self.call("Page.navigate", url=address)
        await self.wait_for("document.readyState === 'complete' && document.getElementById('languages')?.textContent")

    async def value(self, expression):
        """What an expression of JavaScript evaluates to."""
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def wait_for(self, expression, seconds=60):
        """Wait until it is true."""
        async with asyncio.timeout(seconds):
            while not await self.value(expression):
                await asyncio.sleep(0.05)

    async def click(self, selector):
        """Click an element."""
        await self.value(f"document.querySelector('{selector}').click()")

    async def press(self, key, code=0):
        """Press a key; `code` is the virtual one of keys that are no letters."""
        letter = {"text": key} if len(key) == 1 else {"windowsVirtualKeyCode": code}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **letter)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **letter)

    async def choose_file(self, selector, path):
        """Give a file to an input."""
        root = await self.call("DOM.getDocument")
        node = await self.call("DOM.querySelector", nodeId=root["root"]["nodeId"], selector=selector)
        await self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node["nodeId"])

    async def screenshot(self, path):
        """Write what is seen as png."""
        picture = await self.call("Page.captureScreenshot")
        path.write_bytes(base64.b64decode(picture["data"]))


@asynccontextmanager
async def browser(directory, microphone=None):
    """A page of a fresh browser whose profile is in `directory` and whose microphone plays a wav file."""
    flags = [*(f"--{switch}" for switch in SWITCHES.split()), f"--user-data-dir={directory}"]
    flags += [f"--use-file-for-fake-audio-capture={microphone}"] if microphone else []
    null = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(executable(), *flags, "about:blank", stdout=null, stderr=null)
    try:
        port_file = directory / "DevToolsActivePort"
        async with asyncio.timeout(60):
            while not port_file.exists() or len(port_file.read_text().split()) < 2:
                await asyncio.sleep(0.1)
        port = port_file.read_text().split()[0]
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{port}/json/list") as answer:
                (target,) = [one for one in await answer.json() if one["type"] == "page"]
            async with http.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        process.terminate()
        await process.wait()
