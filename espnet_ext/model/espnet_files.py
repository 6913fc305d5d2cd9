"""ST and S2T models from the files of ESPnet's training: config.yaml and weights."""

import argparse
import pickle
from pathlib import Path
from zipfile import BadZipFile

import torch
import yaml
from espnet2.tasks.lm import LMTask
from espnet2.tasks.s2t import S2TTask
from espnet2.tasks.st import STTask

from espnet_ext.errors import UserError
from espnet_ext.model.espnet_s2t import SpeechToTextModel, symbols
from espnet_ext.model.espnet_st import SpeechTranslationModel
from espnet_ext.model.packed import recommended_layer
from espnet_ext.model.vocabulary import Vocabulary


def load_espnet(
    train_config: str | Path,
    model_file: str | Path,
    device: str,
    lm_train_config: str | Path | None,
    lm_file: str | Path | None,
    precision: str,
    compiled: bool,
) -> SpeechTranslationModel:
    """See `espnet_ext.model.loading.load_model`."""
    if (lm_train_config is None) != (lm_file is None):
        raise UserError("lm_train_config and lm_file: one is of no use without the other")
    config = _read_config(train_config, "st_train_config", ("encoder", "decoder"))
    if config.get("model") == "espnet_ctc":
        raise UserError(f"{train_config}: model: a CTC-only model has no decoder to search with")
    is_s2t = config.get("preprocessor") == "s2t"
    base = Path(train_config).resolve().parent
    bpemodel = config.get("bpemodel")
    if bpemodel is not None:
        bpemodel = _find(bpemodel, base, f"{train_config}: bpemodel")
    normalize_conf = config.get("normalize_conf") or {}
    if normalize_conf.get("stats_file"):
        stats = _find(normalize_conf["stats_file"], base, f"{train_config}: normalize_conf.stats_file")
        config["normalize_conf"] = normalize_conf | {"stats_file": str(stats)}
    # The weights are about to be loaded; where training took its first ones from no longer matters.
    config |= {"init_param": [], "init": None}
    module = (S2TTask if is_s2t else STTask).build_model(argparse.Namespace(**config))
    _load_weights(module, model_file, train_config)
    hidden = symbols(config["token_list"]) if is_s2t else frozenset()
    vocabulary = Vocabulary(config["token_list"], config["token_type"], bpemodel, hidden)
    language_model = None
    if lm_train_config is not None:
        language_model = _load_language_model(lm_train_config, lm_file, config["token_list"]).to(device)
    return (SpeechToTextModel if is_s2t else SpeechTranslationModel)(
        module.to(device),
        vocabulary,
        config,
        precision=precision,
        language_model=language_model,
        compiled=compiled,
        attention_layer=recommended_layer(model_file),
    )


def _load_language_model(train_config: str | Path, file: str | Path, tokens: list[str]) -> torch.nn.Module:
    config = _read_config(train_config, "lm_train_config", ("lm",))
    if config["token_list"] != tokens:
        raise UserError(f"{train_config}: its token_list is not that of the translation model")
    module = LMTask.build_model(argparse.Namespace(**config | {"init": None, "init_param": []}))
    _load_weights(module, file, train_config)
    return module.lm.eval()


def _read_config(path: str | Path, option: str, keys: tuple[str, ...]) -> dict:
    try:
        config = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file ({option})") from None
    except (yaml.YAMLError, UnicodeDecodeError, IsADirectoryError) as error:
        raise UserError(f"{path}: not a training config: {error}") from None
    missing = [key for key in (*keys, "token_list", "token_type") if key not in (config or {})]
    if missing:
        raise UserError(f"{path}: not the config.yaml of such a model ({option}): no key {missing[0]!r}")
    return config


def _find(name: str, base: Path, where: str) -> Path:
    for directory in (base, *base.parents, Path()):
        if (directory / name).is_file():
            return directory / name
    raise UserError(f"{where}: no file {name} in or above {base}, nor here")


def _load_weights(module: torch.nn.Module, path: str | Path, config: str | Path) -> None:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"{path}: no such model file") from None
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError, BadZipFile) as error:
        raise UserError(f"{path}: not a model file: {str(error).splitlines()[0]}") from None
    own = module.state_dict()
    wrong = [key for key in own if key in state and own[key].shape != state[key].shape]
    absent = [key for key in own if key not in state]
    surplus = [key for key in state if key not in own]
    for kind, keys in (("another shape", wrong), ("no value", absent), ("no place", surplus)):
        if keys:
            raise UserError(f"{path} does not fit {config}: {len(keys)} parameters have {kind}, such as {keys[0]}")
    module.load_state_dict(state)
