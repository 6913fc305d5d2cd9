"""Average the parameters of N epochs of an ESPnet training: the last ones, or those around the best."""

import re
from pathlib import Path

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import check_output, whole_save


def epochs(directory: Path) -> dict[int, Path]:
    """The epoch files of a training directory by number."""
    numbers = {path: re.fullmatch(r"(\d+)epoch\.pth", path.name) for path in directory.glob("*epoch.pth")}
    return {int(match[1]): path for path, match in numbers.items() if match}


def best_checkpoint(directory: Path) -> Path:
    """The epoch file that ESPnet's link to the best model points to, by the criterion of `best_model_criterion`.

    Raises UserError when there is no such link, or one for each of several criteria.
    """
    links = [path for path in directory.glob("*.best.pth") if path.is_symlink()]
    if len(links) != 1:
        found = ", ".join(sorted(path.name for path in links)) or "none"
        raise UserError(f"{directory}: one link to the best epoch (valid.*.best.pth) is needed, there are: {found}")
    return directory / links[0].readlink().name


def chosen_epochs(directory: Path, last: int | None, around_best: int | None) -> list[Path]:
    """The files of the `last` epochs, or of the `around_best` epochs with the best one in their middle, oldest first.

    Near an end of the training the window around the best epoch is moved inside. Raises UserError when one of the files
    is not there.
    """
    option, count = ("--last", last) if last is not None else ("--around_best", around_best)
    if count < 1 or (option == "--around_best" and count % 2 == 0):
        odd = " and odd: as many epochs before the best one as after it" if option == "--around_best" else ""
        raise UserError(f"{option} {count}: must be at least 1{odd}")
    if not directory.is_dir():
        raise UserError(f"{directory}: no such training directory")
    found = epochs(directory)
    newest = max(found, default=0)
    if newest < count:
        raise UserError(f"{directory}: {newest} checkpoints (Nepoch.pth), {option} asks for {count}; train longer")
    end = newest
    if option == "--around_best":
        best = int(best_checkpoint(directory).name.removesuffix("epoch.pth"))
        end = min(max(best + count // 2, count), newest)
    wanted = range(end - count + 1, end + 1)
    absent = [epoch for epoch in wanted if epoch not in found]
    if absent:
        raise UserError(
            f"{directory}/{absent[0]}epoch.pth: not kept; set keep_nbest_models to max_epoch or take a smaller {option}"
        )
    return [found[epoch] for epoch in wanted]


def add_rule(parser: ArgumentParser) -> None:
    """The options that `chosen_epochs` takes."""
    rule = parser.add_mutually_exclusive_group(required=True)
    rule.add_argument("--last", type=int, help="average the last N epochs")
    rule.add_argument("--around_best", type=int, help="average N epochs with the best one on dev in the middle")


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


def write_average(paths: list[Path], output: Path) -> None:
    """Write the mean of the checkpoints, whole or not at all, and say which they are."""
    state = average(paths)

    import torch

    whole_save(torch.save)(state, output)
    print(f"{output}: mean of {', '.join(path.name for path in paths)}")


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    add_rule(parser)
    parser.add_argument("--exp_dir", type=Path, required=True, help="training directory with Nepoch.pth files")
    parser.add_argument("--output", type=Path, required=True, help="file to write, for example model.pth")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Average and write one file, whole or not at all."""
    args = get_parser().parse_args(argv)
    paths = chosen_epochs(args.exp_dir, args.last, args.around_best)
    check_output(args.output, "output", epochs(args.exp_dir).values())
    write_average(paths, args.output)


if __name__ == "__main__":
    run(main)
