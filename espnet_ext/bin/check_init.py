"""Count the tensors that ESPnet's `--init_param FILE:SRC:DST[:EXCLUDE]` loads into a model and those it skips."""

import json
import sys
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import read_lines

SHOWN = 3


@dataclass(frozen=True)
class InitReport:
    """Names of tensors: `loaded` into the model, `skipped` (selected in the file, but without a place of the same name
    and shape in the model) with the reason, `missing` (in the part of the model to initialise, but not loaded)."""

    loaded: list[str]
    skipped: dict[str, str]
    missing: list[str]

    def counts(self) -> dict[str, int]:
        """Their numbers."""
        return {"loaded": len(self.loaded), "skipped": len(self.skipped), "missing": len(self.missing)}

    def __str__(self) -> str:
        text = "{loaded} tensors loaded, {skipped} skipped, {missing} missing".format(**self.counts())
        reasons = [f"{name} {why}" for name, why in self.skipped.items()]
        more = ["..."] if len(reasons) > SHOWN else []
        return f"{text} ({'; '.join(reasons[:SHOWN] + more)})" if reasons else text


def select(tensors: dict, key: str) -> dict:
    """The entries below `key`, without that prefix; all of them for an empty key."""
    prefix = f"{key}." if key else ""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def count_loaded(init_param: str, config: Path) -> InitReport:
    """Compare the file's part `SRC` with the part `DST` of the model of a training's config.yaml.

    Raises UserError when a file is missing or nothing would be loaded.
    """
    import torch
    import yaml
    from espnet2.tasks.st import STTask

    path, source, destination, excludes = (*init_param.split(":", 3), "", "", "")[:4]
    for file in (Path(path), config):
        if not file.is_file():
            raise UserError(f"{file}: no such file")
    # Feature statistics and first weights do not change which tensors there are.
    settings = yaml.safe_load("\n".join(read_lines(config))) | {"normalize": None, "init": None, "init_param": []}
    model = STTask.build_model(Namespace(**settings))
    tensors = torch.load(path, map_location="cpu", weights_only=True)
    for exclude in filter(None, excludes.split(",")):
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(exclude)}
    given, places = select(tensors, source), select(model.state_dict(), destination)
    loaded = [name for name, tensor in given.items() if name in places and places[name].shape == tensor.shape]
    skipped = {}
    for name in given.keys() - set(loaded):
        sizes = [" x ".join(map(str, where[name].shape)) for where in (given, places) if name in where]
        why = f"is {sizes[0]} in the file, {sizes[1]} in the model" if name in places else "has no place in the model"
        skipped[f"{source}.{name}".lstrip(".")] = why
    report = InitReport(loaded, dict(sorted(skipped.items())), sorted(places.keys() - set(loaded)))
    if not loaded:
        parts = sorted({name.split(".")[0] for name in tensors})
        raise UserError(f"--init_param {init_param}: no tensor loaded ({report}); {path} holds {', '.join(parts)}")
    return report


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--init_param", required=True, help="FILE:SRC:DST[:EXCLUDE], as given to ESPnet's training")
    parser.add_argument("--st_train_config", type=Path, required=True, help="config.yaml of the model to initialise")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Print the numbers as one JSON line, after a line on stderr for each tensor that is skipped."""
    args = get_parser().parse_args(argv)
    report = count_loaded(args.init_param, args.st_train_config)
    for name, why in report.skipped.items():
        print(f"skipped: {name} {why}", file=sys.stderr)
    print(json.dumps(report.counts()))


if __name__ == "__main__":
    run(main)
