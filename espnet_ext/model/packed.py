"""Where the files of a trained model lie: in a packed archive, in the directory unpacked from it, or as trained."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

import yaml

from espnet_ext.errors import UserError

META = "meta.yaml"
CONFIG_KEY, WEIGHTS_KEY = "st_train_config", "st_model_file"


@contextmanager
def model_files(path: str | Path) -> Iterator[tuple[Path, Path]]:
    """Training config and weights of a model that is named by one path.

    The path is an archive (`.zip`) in the format of `espnet2.main_funcs.pack_funcs`, the directory it was unpacked to
    (as on the Hugging Face hub), or a training directory with `config.yaml` and `model.pth`. What an archive holds is
    unpacked to a temporary directory that is there as long as the block runs.
    Raises UserError for anything else.
    """
    path = Path(path)
    if path.is_dir():
        yield _in_directory(path, path)
        return
    if not path.is_file():
        raise UserError(
            f"{path}: no such model; give a packed archive, the directory unpacked from it or a training directory"
        )
    with TemporaryDirectory(prefix="espnet_ext.") as directory:
        try:
            with ZipFile(path) as archive:
                archive.extractall(directory)
        except BadZipFile as error:
            raise UserError(f"{path}: not a packed model: {error}") from None
        yield _in_directory(Path(directory), path)


def _in_directory(directory: Path, named: Path) -> tuple[Path, Path]:
    """(config, weights) below `directory`; errors speak of `named`."""
    names = {CONFIG_KEY: "config.yaml", WEIGHTS_KEY: "model.pth"}
    if (directory / META).is_file():
        try:
            meta = yaml.safe_load((directory / META).read_text(encoding="utf-8"))
            names = {CONFIG_KEY: meta["yaml_files"][CONFIG_KEY], WEIGHTS_KEY: meta["files"][WEIGHTS_KEY]}
        except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError):
            raise UserError(f"{named}: its {META} names no {CONFIG_KEY} and {WEIGHTS_KEY}: not an ST model") from None
    for name in names.values():
        if not (directory / name).is_file():
            raise UserError(f"{named}: no {name} in it; give a packed model or a training directory with a model.pth")
    return directory / names[CONFIG_KEY], directory / names[WEIGHTS_KEY]
