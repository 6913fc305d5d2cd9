"""Convert a decode's log between formats: ours, SimulEval's, simulstream's, OmniSTEval's."""

import dataclasses
import json
from collections.abc import Iterator, Sequence

from espnet_ext.bin.validate_log import FORMATS, read_log
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write, check_output
from espnet_ext.log.instances import Instance
from espnet_ext.log.simulstream import write_simulstream

SIMULEVAL_KEYS = (
    "index",
    "prediction",
    "delays",
    "elapsed",
    "prediction_length",
    "reference",
    "source",
    "source_length",
)


def get_parser() -> ArgumentParser:
    """The command's parser."""
    parser = ArgumentParser(prog="convert_log", description=__doc__)
    parser.add_argument("log", help="the log to convert")
    parser.add_argument("--format", choices=FORMATS, default="ours", help="of the log")
    parser.add_argument("--to", choices=FORMATS, required=True)
    parser.add_argument("--output", required=True, help="the log to write")
    parser.add_argument("--tgt_lang", required=True, help="target language; zh and ja are counted by character")
    return parser


def to_lines(instances: Sequence[Instance], to: str, tgt_lang: str) -> Iterator[str]:
    """The lines of the converted log. Raises ValueError for what the format cannot hold."""
    if to == "simulstream":
        yield from write_simulstream(instances, tgt_lang)
        return
    for index, instance in enumerate(instances):
        line = dataclasses.replace(instance, index=index).to_json()
        if to != "ours":  # OmniSTEval reads SimulEval's keys, and finds a talk by the name of its file
            record = {key: value for key, value in json.loads(line).items() if key in SIMULEVAL_KEYS}
            if to == "omnisteval":
                record["source"] = f"{instance.utt_id}.wav"
            line = json.dumps(record, ensure_ascii=False)
        yield line


def main(argv: Sequence[str] | None = None) -> None:
    """Convert one log. Raises UserError on bad input."""
    args = get_parser().parse_args(argv)
    check_output(args.output, "output", [args.log])
    instances = read_log(args.log, args.format, args.tgt_lang)
    try:
        lines = list(to_lines(instances, args.to, args.tgt_lang))
    except ValueError as error:
        raise UserError(f"{args.log}: {error}") from None
    with atomic_write(args.output) as stream:
        stream.writelines(f"{line}\n" for line in lines)
    print(f"{args.output}: {len(instances)} utterances in the format of {args.to}")


if __name__ == "__main__":
    run(main)
