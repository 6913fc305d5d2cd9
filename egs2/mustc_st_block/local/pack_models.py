"""Pack trained models, each into one archive that this project and ESPnet's `from_pretrained` load anywhere.

The same inputs give the same bytes.
"""

import dataclasses
import importlib.metadata
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import yaml
from model_card import write_card
from step import Step, say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.config import DecodeConfig
from espnet_ext.errors import UserError
from espnet_ext.evaluation.results import Decode, read_decodes
from espnet_ext.files import atomic_write, read_lines
from espnet_ext.lock import locked
from espnet_ext.model.packed import ATTENTION_FILE, CONFIG_KEY, META, WEIGHTS_KEY

# Keys of the training config that name files, and the files' names in the archive. Each has a directory: a bare name
# is not taken for a path by espnet_model_zoo.
FILE_KEYS = {
    ("bpemodel",): "data/token_list/tgt/bpe.model",
    ("src_bpemodel",): "data/token_list/src/bpe.model",
    ("normalize_conf", "stats_file"): "data/stats/feats_stats.npz",
}
# What only the training has read.
TRAINING_KEYS = {
    "config": None,
    "init_param": [],
    "train_shape_file": [],
    "valid_shape_file": [],
    "train_data_path_and_name_and_type": [],
    "valid_data_path_and_name_and_type": [],
}
TOKEN_KEYS = ("token_list", "src_token_list")
OLDEST = (1980, 1, 1, 0, 0, 0)  # the time of every member: the clock must not show in the bytes


def strings(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every string in a config, with the key that it stands under; token lists aside."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in TOKEN_KEYS:
                yield from strings(item, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item, key)
    elif isinstance(value, str):
        yield key, value


def relocate(config: dict, path: Path, directory: str) -> dict[str, Path]:
    """Make a training config independent of this machine; returns archive names and the files that belong there.

    Raises UserError, naming the key, for a file that is missing and for any other path of this machine.
    """
    config |= {key: value for key, value in TRAINING_KEYS.items() if key in config} | {"output_dir": directory}
    files = {}
    for (*outer, key), name in FILE_KEYS.items():
        section = config
        for part in outer:
            section = section.get(part) or {}
        if section.get(key) is None:
            continue
        source = Path(section[key])
        if not source.is_file():
            raise UserError(f"{path}: {'.'.join((*outer, key))}: no file {source}; run the stages before 14 again")
        files[name], section[key] = source, name
    for key, value in strings(config):
        if value.startswith("/"):
            raise UserError(
                f"{path}: {key}: {value} is a path of this machine, which cannot be packed; train without it"
            )
    return files


def decode_options(directory: Path) -> str:
    """The options of a decode that are not at their defaults, as a yaml file for `--config`."""
    used = yaml.safe_load("\n".join(read_lines(directory / "config.yaml")))
    default = dataclasses.asdict(DecodeConfig())
    named = {key: used[key] for key in default if key in used}
    shown = {key: v for key, v in named.items() if v != default[key] or key in ("search", "policy", "tgt_lang")}
    return yaml.safe_dump(shown, sort_keys=False)


def write_archive(path: Path, members: Mapping[str, Path | str]) -> None:
    """Write a zip archive of files and texts, uncompressed, its bytes a function of names and contents alone."""
    with atomic_write(path, "wb") as stream, ZipFile(stream, "w") as archive:
        for name, content in sorted(members.items()):
            info = ZipInfo(name, OLDEST)
            info.external_attr = 0o644 << 16
            data = content.encode() if isinstance(content, str) else content.read_bytes()
            archive.writestr(info, data)


def pack(model_dir: Path, archive: Path, decodes: list[Decode], exp_dir: Path, corpus: str) -> None:
    """Write the archive of one model."""
    directory = f"exp/{model_dir.name}"
    config = yaml.safe_load("\n".join(read_lines(model_dir / "config.yaml")))
    members: dict[str, Path | str] = {**relocate(config, model_dir / "config.yaml", directory)}
    names = {CONFIG_KEY: f"{directory}/config.yaml", WEIGHTS_KEY: f"{directory}/model.pth"}
    meta = {
        "yaml_files": {CONFIG_KEY: names[CONFIG_KEY]},
        "files": {WEIGHTS_KEY: names[WEIGHTS_KEY]},
        **{package: importlib.metadata.version(package) for package in ("espnet", "torch")},
    }
    members |= {
        names[CONFIG_KEY]: yaml.safe_dump(config, allow_unicode=True, sort_keys=False),
        names[WEIGHTS_KEY]: model_dir / "model.pth",
        META: yaml.safe_dump(meta, sort_keys=False),
        "README.md": write_card(model_dir, archive.name, decodes, config, corpus),
    }
    if (model_dir / ATTENTION_FILE).is_file():
        members[f"{directory}/{ATTENTION_FILE}"] = model_dir / ATTENTION_FILE
    for decode in decodes:
        source = exp_dir / "decode" / decode.model / decode.system / decode.set
        members[f"conf/decode/{decode.system}.yaml"] = decode_options(source)
    write_archive(archive, members)
    say(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB, scores of {len(decodes)} decodes")


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--model_dirs", type=Path, nargs="+", required=True, help="training directories with model.pth")
    parser.add_argument("--exp_dir", type=Path, default=Path("exp"), help="its decode/ has the scores for the card")
    parser.add_argument("--corpus", required=True, help="what the models were trained on, for the card")
    parser.add_argument("--output_dir", type=Path, default=Path("exp/packed"))
    return parser


def main(argv: list[str] | None = None) -> None:
    """Pack what has changed since it was packed last."""
    args = get_parser().parse_args(argv)
    decodes, _ = read_decodes(args.exp_dir)
    decodes_of = {path: [decode for decode in decodes if decode.model == path.name] for path in args.model_dirs}
    for model_dir, own in decodes_of.items():
        for name in ("config.yaml", "model.pth"):
            if not (model_dir / name).is_file():
                raise UserError(f"{model_dir / name}: no such file; run stages 9 and 10")
        if not own:
            raise UserError(f"{model_dir.name}: no scored decode for its card; run stages 11 and 12")
    with locked(args.output_dir):
        for model_dir, own in decodes_of.items():
            archive = args.output_dir / f"{model_dir.name}.zip"
            scores = [[d.system, d.set, d.stats, d.scores] for d in own]
            inputs = [model_dir / name for name in ("config.yaml", "model.pth", ATTENTION_FILE)]
            step = Step(args.output_dir / f".{model_dir.name}.done", {"corpus": args.corpus, "scores": scores}, inputs)
            if not step.is_done(archive):
                pack(model_dir, archive, own, args.exp_dir, args.corpus)
                step.finish([archive])


if __name__ == "__main__":
    run(main)
