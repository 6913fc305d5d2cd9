"""Average the parameters of the last N epochs of an ESPnet training."""

import re
from pathlib import Path

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import whole_save


def last_epochs(directory: Path, count: int) -> list[Path]:
    """The files of the last `count` epochs, oldest first. Raises UserError when one of them is not there."""
    numbers = {path: re.fullmatch(r"(\d+)epoch\.pth", path.name) for path in directory.glob("*epoch.pth")}
    found = {int(match[1]): path for path, match in numbers.items() if match}
    if len(found) < count:
        raise UserError(f"{directory}: {len(found)} checkpoints (Nepoch.pth), --last asks for {count}; train longer")
    wanted = range(max(found) - count + 1, max(found) + 1)
    absent = [epoch for epoch in wanted if epoch not in found]
    if absent:
        raise UserError(
            f"{directory}/{absent[0]}epoch.pth: not kept; set keep_nbest_models to max_epoch or take a smaller --last"
        )
    return [found[epoch] for epoch in wanted]


def average(paths: list[Path]) -> dict:
    """Mean of every tensor over the checkpoints, computed in double precision, in the tensor's own type.

    Means of integer tensors are rounded. Raises UserError when names or shapes differ between checkpoints.
    """
    import torch

    total: dict[str, torch.Tensor] = {}
    types: dict[str, torch.dtype] = {}
    for path in paths:
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, OSError) as error:
            raise UserError(f"{path}: not a whole checkpoint: {error}") from None
        if not total:
            types = {name: tensor.dtype for name, tensor in state.items()}
        differing = state.keys() ^ types.keys()
        differing |= {name for name in total.keys() & state.keys() if total[name].shape != state[name].shape}
        if differing:
            raise UserError(f"{path}: parameter {min(differing)} differs in name or shape from {paths[0].name}")
        for name, tensor in state.items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    means = {name: tensor / len(paths) for name, tensor in total.items()}
    return {n: (mean if types[n].is_floating_point else mean.round()).to(types[n]) for n, mean in means.items()}


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--last", type=int, required=True, help="number of epochs")
    parser.add_argument("--exp_dir", type=Path, required=True, help="training directory with Nepoch.pth files")
    parser.add_argument("--output", type=Path, required=True, help="file to write, for example model.pth")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Average and write one file, whole or not at all."""
    args = get_parser().parse_args(argv)
    if args.last < 1:
        raise UserError(f"--last {args.last}: must be at least 1")
    if not args.exp_dir.is_dir():
        raise UserError(f"{args.exp_dir}: no such training directory")
    paths = last_epochs(args.exp_dir, args.last)
    state = average(paths)

    import torch

    whole_save(torch.save)(state, args.output)
    print(f"{args.output}: mean of {', '.join(path.name for path in paths)}")


if __name__ == "__main__":
    run(main)
