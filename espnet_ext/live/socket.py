"""A WebSocket that says why it closes."""

import asyncio
import contextlib

from aiohttp import WSCloseCode, web
from aiohttp.abc import AbstractStreamWriter

MAX_REASON_BYTES = 123  # of a close frame
CLOSE_S = 2.0  # for a client to take an error and to answer the close
FAULTS = {
    WSCloseCode.MESSAGE_TOO_BIG: "message: longer than {limit} bytes; send shorter pieces",
    WSCloseCode.INVALID_TEXT: "message: text that is not UTF-8",
    WSCloseCode.PROTOCOL_ERROR: "not a frame of the WebSocket protocol",
}


class Socket(web.WebSocketResponse):
    """The server's side of a WebSocket.

    Args:
        name: for the log.
        max_message_bytes: a longer message closes it.
    """

    def __init__(self, name: str, max_message_bytes: int) -> None:
        # One byte more: aiohttp refuses messages of this size too.
        super().__init__(max_msg_size=max_message_bytes + 1, compress=False, timeout=CLOSE_S)
        self.name = name
        self.max_message_bytes = max_message_bytes

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Answer the handshake."""
        self.transport = request.transport
        return await super().prepare(request)

    async def refuse(self, error: str, code: int = WSCloseCode.POLICY_VIOLATION) -> None:
        """Send an error and close; a client that does not take them in time is cut off."""
        if self.closed:
            return
        reason = error.encode()[:MAX_REASON_BYTES].decode(errors="ignore").encode()
        try:
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self.send_json({"error": error})
                    await super().close(code=code, message=reason, drain=False)
        finally:
            self.cut_off()

    def cut_off(self) -> None:
        """End the connection, whatever the client has not taken."""
        self.transport.abort()

    async def close(self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True) -> bool:
        """Close; when aiohttp closes on a message that it cannot take, the client is told."""
        if code in FAULTS and not self.closed:
            await self.refuse(FAULTS[code].format(limit=self.max_message_bytes), code)
            return True
        return await super().close(code=code, message=message, drain=drain)
