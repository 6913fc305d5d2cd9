"""The grid of decodes: a yaml list of option combinations, each with every set and the models it is meant for."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import yaml
from kaldi_dir import target_text

from espnet_ext.cli import ArgumentParser
from espnet_ext.config import DecodeConfig, make_config
from espnet_ext.errors import UserError
from espnet_ext.files import read_lines


@dataclass(frozen=True)
class Decode:
    """One decode: a model, a configuration, a data directory with segments.

    In long form the whole talks of the directory are decoded, which lie in the directory beside it.
    """

    model_dir: Path
    config: DecodeConfig
    segmented: Path
    exp_dir: Path

    @property
    def data(self) -> Path:
        """The directory whose wav.scp is decoded."""
        return self.segmented.with_name(f"{self.segmented.name}_talks") if self.config.long_form else self.segmented

    @property
    def segments(self) -> Path | None:
        """Which parts of the recordings are decoded; None for all of them."""
        return None if self.config.long_form else self.data / "segments"

    @property
    def inputs(self) -> list[Path]:
        """What is decoded, and with what references."""
        return [self.references, self.data / "wav.scp", *([self.segments] if self.segments else [])]

    @property
    def system(self) -> str:
        return self.config.system

    @property
    def directory(self) -> Path:
        return self.exp_dir / "decode" / self.model_dir.name / self.system / self.data.name

    @property
    def name(self) -> str:
        return f"{self.model_dir.name} {self.system} {self.data.name}"

    @property
    def options(self) -> dict[str, object]:
        """The options of the configuration that are set."""
        return {name: value for name, value in asdict(self.config).items() if value is not None}

    @property
    def references(self) -> Path:
        return self.data / target_text(self.config.tgt_lang)


def read_grid(path: Path, tgt_lang: str) -> list[tuple[DecodeConfig, str]]:
    """Every configuration of the grid and the models (`all`, `largest`) that it is for.

    Raises UserError, naming file and entry, for anything that is not a list of decoding options.
    """
    try:
        entries = yaml.safe_load("\n".join(read_lines(path)))
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not yaml: {error}") from None
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{path}: must be a list of decoding options")
    result = []
    for number, entry in enumerate(entries, start=1):
        where = f"{path}: entry {number}"
        if not isinstance(entry, dict) or entry.get("models") not in ("all", "largest"):
            raise UserError(f"{where}: needs `models: all` or `models: largest` beside decoding options")
        which = entry.pop("models")
        options = {key: value if isinstance(value, list) else [value] for key, value in entry.items()}
        for values in product(*options.values()):
            try:
                config = make_config(dict(zip(options, values, strict=True), tgt_lang=tgt_lang))
            except UserError as error:
                raise UserError(f"{where}: {error}") from None
            result.append((config, which))
    return result


def plan(
    grid: Path,
    exp_dir: Path,
    data_dir: Path,
    sets: Sequence[str],
    models: Sequence[str],
    tgt_lang: str,
    src_lang: str = "en",
) -> list[Decode]:
    """Every decode of the grid for the trained models (`block20`, `offline`, ...), set by set."""
    pair = f"{src_lang}-{tgt_lang}"
    by_size = sorted(models, key=lambda name: int("".join(filter(str.isdigit, name)) or 0))
    chosen = {"all": by_size, "largest": by_size[-1:]}
    return [
        Decode(exp_dir / f"st_{model}.{pair}", config, data_dir / f"{name}.{pair}", exp_dir)
        for name in sets
        for config, which in read_grid(grid, tgt_lang)
        for model in chosen[which]
    ]


def add_grid_options(parser: ArgumentParser) -> None:
    """Options that `plan_from_args` needs."""
    parser.add_argument("--grid", type=Path, required=True, help="yaml list of decodes")
    parser.add_argument("--exp_dir", type=Path, default=Path("exp"))
    parser.add_argument("--data_dir", type=Path, default=Path("data"))
    parser.add_argument("--sets", nargs="+", default=["dev", "tst-COMMON"])
    parser.add_argument("--models", nargs="+", required=True, help="the trained models, for example block40")
    parser.add_argument("--src_lang", default="en")
    parser.add_argument("--tgt_lang", required=True)
    parser.add_argument("--nj", type=int, default=1, help="parallel jobs")


def plan_from_args(args: object) -> list[Decode]:
    """The grid of parsed options."""
    return plan(args.grid, args.exp_dir, args.data_dir, args.sets, args.models, args.tgt_lang, args.src_lang)
