"""Where the files of a trained model lie: in a packed archive, a directory, or a repository of the Hugging Face hub."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

import yaml

from espnet_ext.errors import UserError
from espnet_ext.model.hub import download, is_hub_name

META = "meta.yaml"
CONFIG_KEY, WEIGHTS_KEY = "st_train_config", "st_model_file"
S2T_KEYS = ("s2t_train_config", "s2t_model_file")
WHISPER_CONFIG = "config.json"
WHISPER_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
ATTENTION_FILE = "attention.json"  # what check_attention has found, beside the weights


@contextmanager
def model_files(name: str | Path) -> Iterator[tuple[Path, Path]]:
    """Config and weights of a model that is named by one path or by its name on the hub; a path that exists wins.

    A path is an archive (`.zip`) in the format of `espnet2.main_funcs.pack_funcs`, the directory it was unpacked to, a
    training directory with `config.yaml` and `model.pth`, or a Whisper model's directory with `config.json`. What an
    archive holds is unpacked to a temporary directory that is there as long as the block runs. A name on the hub is
    `owner/name`, or `owner/name@revision`; its repository holds the same as such a directory.
    Raises UserError for anything else.
    """
    path = Path(name)
    if path.is_dir():
        yield _in_directory(path, path)
        return
    if not path.exists() and is_hub_name(str(name)):
        yield _in_directory(download(str(name)), path)
        return
    if not path.is_file():
        raise UserError(
            f"{path}: no such model; give a packed archive, the directory unpacked from it, a training directory, or "
            "owner/name on the Hugging Face hub"
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
    if (directory / META).is_file():
        config, weights = _of_meta(directory, named)
    elif (directory / WHISPER_CONFIG).is_file():
        config, weights = WHISPER_CONFIG, _whisper_weights(directory, named)
    else:
        config, weights = "config.yaml", "model.pth"
    for name in (config, weights):
        if not (directory / name).is_file():
            raise UserError(f"{named}: no {name} in it; give a packed model or a training directory with a model.pth")
    return directory / config, directory / weights


def _of_meta(directory: Path, named: Path) -> tuple[str, str]:
    try:
        meta = yaml.safe_load((directory / META).read_text(encoding="utf-8"))
        s2t = S2T_KEYS[0] in meta["yaml_files"]
        config_key, weights_key = S2T_KEYS if s2t else (CONFIG_KEY, WEIGHTS_KEY)
        return meta["yaml_files"][config_key], meta["files"][weights_key]
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError):
        raise UserError(
            f"{named}: its {META} names no {CONFIG_KEY} and {WEIGHTS_KEY}, nor those of s2t: not an ST or S2T model"
        ) from None


def _whisper_weights(directory: Path, named: Path) -> str:
    try:
        kind = json.loads((directory / WHISPER_CONFIG).read_text(encoding="utf-8"))["model_type"]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{named}: its {WHISPER_CONFIG} names no model_type: not a Whisper model") from None
    if kind != "whisper":
        raise UserError(f"{named}: a model of type {kind!r}; of transformers' models only whisper can be used")
    return next((name for name in WHISPER_WEIGHTS if (directory / name).is_file()), WHISPER_WEIGHTS[0])


def recommended_layer(weights: str | Path) -> int | None:
    """The decoder layer that check_attention has written beside the weights, if it has found one.

    Raises UserError for a file that it has not written.
    """
    path = Path(weights).with_name(ATTENTION_FILE)
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))["recommended_layer"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise UserError(f"{path}: not written by check_attention; remove it") from None
