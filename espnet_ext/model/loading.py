"""One way to load a model, whatever its family and wherever it lies."""

from pathlib import Path

from espnet_ext.config import PRECISIONS
from espnet_ext.errors import UserError
from espnet_ext.memory import limit_onednn
from espnet_ext.model.espnet_files import load_espnet
from espnet_ext.model.packed import WHISPER_CONFIG, model_files
from espnet_ext.model.protocol import SpeechModel


def load_model(
    st_train_config: str | Path,
    st_model_file: str | Path | None = None,
    device: str = "cpu",
    lm_train_config: str | Path | None = None,
    lm_file: str | Path | None = None,
    precision: str = "float32",
    compiled: bool = False,
) -> SpeechModel:
    """Load an ESPnet ST or S2T model or a Whisper model, and a language model for `lm_weight` if named.

    Without `st_model_file` the first argument names the model: a local path or a name on the Hugging Face hub
    (`espnet_ext.model.packed`). With it the two are the training config and the weights.
    `precision` is that of the decoder's products: `float32`, `bfloat16` or `int8` (on the CPU). `compiled` runs the
    decoder through `torch.compile`, which takes about a minute in the first steps and needs a C++ compiler on the CPU.
    Files that the config names (bpemodel, stats_file) are looked for from the config's directory upwards, then from the
    working directory, so a recipe's models and packed ones load from anywhere.
    Raises UserError for missing or unreadable files, for weights that do not fit the config, for a language model
    over other tokens, and for options that the model's family does not have.
    """
    if st_model_file is None:
        with model_files(st_train_config) as (train_config, weights):
            return load_model(train_config, weights, device, lm_train_config, lm_file, precision, compiled)
    if precision not in PRECISIONS:
        raise UserError(f"precision: {precision!r} is not one of {', '.join(PRECISIONS)}")
    if precision == "int8" and device != "cpu":
        raise UserError("precision: int8 runs on the CPU only")
    if precision == "int8" and compiled:
        raise UserError("precision: int8 cannot be compiled; leave out one of --precision and --compile")
    limit_onednn()
    if Path(st_train_config).name != WHISPER_CONFIG:
        return load_espnet(st_train_config, st_model_file, device, lm_train_config, lm_file, precision, compiled)
    if lm_train_config is not None or lm_file is not None:
        raise UserError("lm_train_config: a Whisper model takes no language model; leave it out")
    try:
        from espnet_ext.model.whisper import load_whisper  # here: only these models need transformers
    except ModuleNotFoundError as error:
        raise UserError(f"{st_train_config}: a Whisper model; install espnet-ext[whisper] ({error})") from None
    return load_whisper(Path(st_train_config).parent, device, precision, compiled)
