"""One command for people: `espnet-simul translate talk.wav --model DIR`, and the other commands under short names."""

import difflib
import importlib
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import NoReturn

import espnet_ext
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError

COMMANDS = {
    "translate": ("translate", "print the translation of audio as it grows"),
    "serve": ("serve", "translate over a WebSocket"),
    "decode": ("st_inference_simul", "decode a test set into a log"),
    "score": ("score_simul", "quality and latency of a log"),
    "report": ("report_simul", "tables and figures of all decodes of an experiment"),
    "check-attention": ("check_attention", "can AlignAtt work with this model?"),
    "check-chunks": ("check_chunk_invariance", "does the text depend on how the audio is cut?"),
    "check-init": ("check_init", "what does an init_param load into a model?"),
    "average": ("average_checkpoints", "average the epochs of a training"),
    "validate-log": ("validate_log", "is a log whole and consistent?"),
    "convert-log": ("convert_log", "a log in another tool's format"),
}


def get_parser() -> ArgumentParser:
    """The options before a command's name; its own come with its module."""
    lines = [f"  {name:16} {what}" for name, (_, what) in COMMANDS.items()]
    parser = ArgumentParser(
        prog="espnet-simul",
        usage="espnet-simul COMMAND ...",
        description="Simultaneous speech translation with ESPnet models.",
        epilog="\n".join(["commands (espnet-simul COMMAND --help has the options of each):", *lines]),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"espnet-ext {espnet_ext.__version__}")
    return parser


def main(argv: Sequence[str] | None = None) -> int | None:
    """Import the command's module and hand over. Raises UserError for a name that is none."""
    name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name.startswith("-"):
        get_parser().parse_args([name])
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(COMMANDS)}"
        raise UserError(f"{name}: unknown command; {hint}")
    module, _ = COMMANDS[name]
    ArgumentParser.called = f"espnet-simul {name}"
    return importlib.import_module(f"espnet_ext.bin.{module}").main(rest)


def entry() -> NoReturn:
    """The console script."""
    run(main)


if __name__ == "__main__":
    entry()
