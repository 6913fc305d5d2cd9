"""Count the tensors that ESPnet's `--init_param FILE:SRC:DST[:EXCLUDE]` loads into a model and those it skips."""

import json
from argparse import Namespace
from dataclasses import asdict, dataclass
from pathlib import Path

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import read_lines


@dataclass(frozen=True)
class InitReport:
    """Numbers of tensors: `loaded` into the model, `skipped` (selected in the file, but without a place of the same
    name and shape in the model), `missing` (in the part of the model to initialise, but not in the file)."""

    loaded: int
    skipped: int
    missing: int

    def __str__(self) -> str:
        return f"{self.loaded} tensors loaded, {self.skipped} skipped, {self.missing} missing"


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
    report = InitReport(len(loaded), len(given) - len(loaded), len(places) - len(loaded))
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
    """Print the report as one JSON line."""
    args = get_parser().parse_args(argv)
    print(json.dumps(asdict(count_loaded(args.init_param, args.st_train_config))))


if __name__ == "__main__":
    run(main)
