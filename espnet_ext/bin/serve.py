"""Live translation: a page for people and a socket for programs, many sessions of one model in one process."""

import argparse
import dataclasses
import ipaddress
import logging
import socket
from collections.abc import Sequence

from espnet_ext.bin.model_options import add_model_options, load_model_from_args, named_model, set_up_logging
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.config import DecodeConfig, add_options, config_from_args
from espnet_ext.errors import UserError
from espnet_ext.live.limits import Limits
from espnet_ext.policy.own import load_own

SHUTDOWN_S = 5.0


def get_parser() -> ArgumentParser:
    """The command's options."""
    epilog = "Unless --config, --search or --policy is given, the policy is hold_n, which the page can tune."
    parser = ArgumentParser(prog="espnet-simul serve", description=__doc__, epilog=epilog)
    add_model_options(parser)
    group = parser.add_argument_group("server")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for all of this machine's")
    group.add_argument("--port", type=int, default=8000, help="0: any free one, which is printed")
    group.add_argument("--max_sessions", type=int, default=16, help="clients at a time")
    group.add_argument("--idle_timeout_s", type=float, default=60.0, help="a client that says nothing is closed")
    group.add_argument(
        "--max_sentence_s", type=float, default=120.0, help="without long_form: then a sentence is ended, as by a flush"
    )
    group.add_argument("--max_message_bytes", type=int, default=2**20, help="of one message of a client")
    group.add_argument("--token", help="clients must know it: ?token=... or a bearer token")
    group.add_argument(
        "--allowed_origins",
        nargs="+",
        default=[],
        metavar="ORIGIN",
        help="other sites whose pages may connect, and names of this one",
    )
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or ctrl-C. Raises UserError for options that cannot be and a port that is taken."""
    args = get_parser().parse_args(argv)
    try:
        from aiohttp import web
    except ImportError:
        raise UserError("serve: needs the package aiohttp: pip install 'espnet-ext[serve]'") from None
    set_up_logging()
    config = decode_config(args)
    limits = Limits(**{option.name: getattr(args, option.name) for option in dataclasses.fields(Limits)})
    from espnet_ext.live.server import Server
    from espnet_ext.session import SimulSession

    with named_model(args):
        model = load_model_from_args(args)
    SimulSession(model, config, policy=load_own(config.policy))  # may refuse an option: nobody is served yet
    listener = listen(args.host, args.port)
    host, port = listener.getsockname()[:2]
    logging.info("serving at http://%s:%d/", f"[{host}]" if ":" in host else host, port)
    app = Server(model, config, limits, local=ipaddress.ip_address(host).is_loopback).app()
    web.run_app(app, sock=listener, print=None, access_log=None, shutdown_timeout=SHUTDOWN_S)


def decode_config(args: argparse.Namespace) -> DecodeConfig:
    """The sessions' options; a policy that can be tuned where none is asked for. Raises UserError."""
    config = config_from_args(args, default_policy="hold_n")
    if config.search == "offline":
        raise UserError("search: offline says nothing before the end; serve another one")
    return config


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises UserError where there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"host, port: cannot listen on {host}:{port}: {reason}") from None


if __name__ == "__main__":
    run(main)
