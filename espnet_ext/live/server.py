"""The server: a page and a socket at `/`, what it is set to at `/info`, and `/health` and `/metrics` for operators."""

import hmac
import importlib.resources
import ipaddress
import itertools
import logging
import re
from collections.abc import Awaitable, Callable

from aiohttp import WSCloseCode, web

from espnet_ext.config import LOWEST, DecodeConfig
from espnet_ext.errors import UserError
from espnet_ext.live.connection import Connection
from espnet_ext.live.engine import Engine
from espnet_ext.live.limits import Limits
from espnet_ext.live.metrics import Metrics
from espnet_ext.live.protocol import readable
from espnet_ext.live.socket import Socket
from espnet_ext.model import SpeechModel

FILES = {
    "page.html": "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "audio.js": "text/javascript",
    "capture.js": "text/javascript",
    "subtitles.js": "text/javascript",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
HIGHEST = {"hold_n": 16, "la_n": 6, "align_att_f": 32, "wait_k": 16, "ctc_wait": 16}  # of the page's slider


class Server:
    """Translates for many clients at once with one model, each in a session with the options of `config`.

    A `local` one listens on this machine's own address alone and goes by no other names than its own, for a page of
    another site whose name has come to mean this machine has an origin that looks like ours.
    """

    def __init__(self, model: SpeechModel, config: DecodeConfig, limits: Limits, local: bool = True) -> None:
        self.config = config
        self.limits = limits
        self.local = local
        self.engine = Engine(model, limits.max_sessions)
        self.metrics = Metrics()
        self.sockets: set[Socket] = set()
        self.numbers = itertools.count(1)

    def app(self) -> web.Application:
        """The application; when it ends, clients are told and the engine stops."""
        app = web.Application(middlewares=[self.mind_host])
        app.router.add_get("/", self.root)
        for name in FILES:
            app.router.add_get(f"/{name}", self.file)
        app.router.add_get("/info", self.info)
        app.router.add_get("/health", self.health)
        app.router.add_get("/metrics", self.show_metrics)
        app.on_shutdown.append(self.say_goodbye)
        app.on_cleanup.append(self.stop)
        return app

    @web.middleware
    async def mind_host(self, request: web.Request, handler: Callable[..., Awaitable]) -> web.StreamResponse:
        """Refuse who calls the server by another's name; a socket is told by `talk`."""
        try:
            self._check_host(request)
        except UserError as error:
            if not _wants_socket(request):
                return web.Response(status=403, text=f"{readable(str(error))}\n")
        return await handler(request)

    async def root(self, request: web.Request) -> web.StreamResponse:
        """simulstream's clients open the address as it is: a socket for them, the page for browsers."""
        if _wants_socket(request):
            return await self.talk(request)
        return _file("page.html")

    async def file(self, request: web.Request) -> web.Response:
        """A part of the page."""
        return _file(request.path[1:])

    async def info(self, request: web.Request) -> web.Response:
        """What the page shows and offers."""
        name, tune = self.config.tuned_by, None
        if name is not None:
            value = getattr(self.config, name)
            tune = {"name": name, "value": value, "min": LOWEST[name], "max": max(HIGHEST[name], value)}
        names = ("search", "policy", "src_lang", "tgt_lang", "long_form")
        about = {name: getattr(self.config, name) for name in names}
        return web.json_response(about | {"tune": tune}, headers=HEADERS)

    async def health(self, request: web.Request) -> web.Response:
        """Whether the server is well, and how many places are taken."""
        open_sessions = len(self.engine.pool.sessions)
        return web.json_response({"status": "ok", "sessions": open_sessions, "max_sessions": self.limits.max_sessions})

    async def show_metrics(self, request: web.Request) -> web.Response:
        """Prometheus' exposition."""
        try:
            self._check_token(request)
        except UserError as error:
            return web.Response(status=401, text=f"{error}\n")
        text = self.metrics.text(len(self.engine.pool.sessions), self.limits.max_sessions)
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def talk(self, request: web.Request) -> Socket:
        """Translate for one client. What it does wrong it is told before its socket closes."""
        socket = Socket(f"client {next(self.numbers)}", self.limits.max_message_bytes)
        await socket.prepare(request)
        self.sockets.add(socket)
        try:
            self._check_host(request)
            self._check_origin(request)
            self._check_token(request)
            await Connection(socket, self.engine, self.config, self.metrics, self.limits).serve()
        except UserError as error:
            self.metrics.refused += 1
            reason = readable(str(error))
            logging.info("%s: %s", socket.name, reason)
            await socket.refuse(reason)
        except ConnectionError:
            logging.info("%s: gone", socket.name)
        except Exception:
            self.metrics.failed += 1
            logging.exception("%s: the session failed", socket.name)
            await socket.refuse("the server failed; its log says how", WSCloseCode.INTERNAL_ERROR)
        finally:
            self.sockets.discard(socket)
            socket.cut_off()
        return socket

    async def say_goodbye(self, app: web.Application) -> None:
        """Tell the clients."""
        for socket in list(self.sockets):
            await socket.refuse("the server is shutting down", WSCloseCode.GOING_AWAY)

    async def stop(self, app: web.Application) -> None:
        """End the engine, when no client is left."""
        self.engine.stop()

    def _check_host(self, request: web.Request) -> None:
        host = request.headers.get("Host")
        friends = (origin.partition("://")[2] for origin in self.limits.allowed_origins)
        if not self.local or host is None or _is_local(host) or _name(host) in map(_name, friends):
            return
        raise UserError(f"host: {host} may not be used for this server; its --allowed_origins can say so")

    def _check_origin(self, request: web.Request) -> None:
        """Pages of other sites may not use the server through a visitor's browser."""
        origin = request.headers.get("Origin")
        if origin is None or origin.partition("://")[2] == request.host or origin in self.limits.allowed_origins:
            return
        raise UserError(f"origin: {origin} may not use this server; its --allowed_origins can say so")

    def _check_token(self, request: web.Request) -> None:
        wanted = self.limits.token
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        given = request.query.get("token", bearer.strip() if scheme.lower() == "bearer" else "")
        if wanted is not None and not hmac.compare_digest(_bytes(given), _bytes(wanted)):
            raise UserError("token: missing or wrong; add ?token=... to the address")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")  # as aiohttp has read headers


def _wants_socket(request: web.Request) -> bool:
    return request.headers.get("Upgrade", "").lower() == "websocket"


def _name(host: str) -> str:
    return re.sub(r":\d+$", "", host).lower()


def _is_local(host: str) -> bool:
    name = _name(host)
    try:
        return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _file(name: str) -> web.Response:
    content = importlib.resources.files("espnet_ext.live").joinpath("page", name).read_text(encoding="utf-8")
    return web.Response(text=content, content_type=FILES[name], headers=HEADERS)
