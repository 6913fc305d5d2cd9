"""Tiny random S2T models, written to disk as ESPnet's training and its packing leave them."""

import argparse
from pathlib import Path
from zipfile import ZipFile

import torch
import yaml
from espnet2.tasks.s2t import S2TTask
from tiny_model import DECODER, make_config

SECONDS = 4.0  # of a window; OWSM's are 30 s
TIMES = [f"<{index / 2:.2f}>" for index in range(9)]
ENCODERS = {
    "e_branchformer": dict(linear_units=24, cgmlp_linear_units=24, cgmlp_conv_kernel=7),
    "transformer": dict(linear_units=24),
}
CONFIG, WEIGHTS = "exp/s2t_train/config.yaml", "exp/s2t_train/valid.acc.ave.pth"


def write_s2t(directory: Path, seed: int = 0, encoder: str = "e_branchformer", **changes) -> dict:
    """Write a packed model's directory, meta.yaml and all; returns the two files that `load_model` takes."""
    st = make_config(directory)
    languages = [f"<{code}>" for code in ("eng", "deu", "fra")]
    tasks = ["<asr>", "<st_deu>", "<st_fra>", "<st_zho>", "<notimestamps>"]
    symbols = ["<blank>", "<unk>", "<na>", *languages, *tasks, *TIMES]
    (directory / "data").mkdir()
    for name in ("bpe.model", "stats.npz"):
        (directory / name).rename(directory / "data" / name)
    config = S2TTask.get_default_config() | dict(
        token_list=[*symbols, *st["token_list"][2:-1], "<sos>", "<eos>", "<sop>"],
        token_type="bpe",
        bpemodel="data/bpe.model",
        frontend="default",
        frontend_conf=st["frontend_conf"],
        normalize="global_mvn",
        normalize_conf=dict(stats_file="data/stats.npz"),
        specaug=None,
        encoder=encoder,
        encoder_conf=dict(output_size=16, attention_heads=2, num_blocks=2, dropout_rate=0.0) | ENCODERS[encoder],
        decoder="transformer",
        decoder_conf=DECODER,
        model_conf=dict(ctc_weight=0.3),
    )
    conf = dict(fs=16000, speech_length=SECONDS, notime_symbol="<notimestamps>")
    config["preprocessor_conf"] = conf | dict(first_time_symbol=TIMES[0], last_time_symbol=TIMES[-1])
    config |= changes
    torch.manual_seed(seed)
    stats = dict(stats_file=str(directory / "data" / "stats.npz"))
    model = S2TTask.build_model(argparse.Namespace(**config | {"normalize_conf": stats}))
    with torch.no_grad():
        # Sharper than the initialisation: languages and audio matter.
        model.decoder.output_layer.weight.mul_(3.0)
        model.decoder.embed[0].weight.mul_(2.0)
        for layer in model.decoder.decoders:
            for linear in (module for module in layer.modules() if isinstance(module, torch.nn.Linear)):
                linear.weight.mul_(2.0)
    (directory / CONFIG).parent.mkdir(parents=True)
    (directory / CONFIG).write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    torch.save(model.state_dict(), directory / WEIGHTS)
    meta = dict(files=dict(s2t_model_file=WEIGHTS), yaml_files=dict(s2t_train_config=CONFIG))
    (directory / "meta.yaml").write_text(yaml.safe_dump(meta), encoding="utf-8")
    return dict(st_train_config=directory / CONFIG, st_model_file=directory / WEIGHTS)


def pack(directory: Path, archive: Path) -> Path:
    """The directory of a packed model as one archive."""
    with ZipFile(archive, "w") as packed:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                packed.write(path, path.relative_to(directory))
    return archive
