"""A WebSocket that says why it closes."""

from aiohttp import WSCloseCode, web

MAX_REASON_BYTES = 123  # of a close frame
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
        super().__init__(max_msg_size=max_message_bytes + 1, compress=False, timeout=2.0)
        self.name = name
        self.max_message_bytes = max_message_bytes

    async def refuse(self, error: str, code: int = WSCloseCode.POLICY_VIOLATION) -> None:
        """Send an error and close; nothing happens where the client has gone."""
        if self.closed:
            return
        try:
            await self.send_json({"error": error})
        except ConnectionError:
            return
        await super().close(code=code, message=error.encode()[:MAX_REASON_BYTES].decode(errors="ignore").encode())

    async def close(self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True) -> bool:
        """Close; when aiohttp closes on a message that it cannot take, the client is told."""
        if code in FAULTS and not self.closed:
            await self.refuse(FAULTS[code].format(limit=self.max_message_bytes), code)
            return True
        return await super().close(code=code, message=message, drain=drain)
