"""Tiny random ST models, written to disk in ESPnet's own format."""

import argparse
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import yaml
from espnet2.tasks.lm import LMTask
from espnet2.tasks.st import STTask

TEXT = """ein kleines Haus steht am Fluss und der Hund schläft unter dem alten Baum
die Frau sagt dass sie morgen drei Bücher kaufen will weil sie gern liest
wir haben gestern 25 Kinder gesehen die im Garten Fußball gespielt haben
""".strip().split("\n")

ENCODER = dict(
    output_size=16,
    attention_heads=2,
    linear_units=24,
    num_blocks=2,
    dropout_rate=0.0,
    positional_dropout_rate=0.0,
    block_size=8,
    hop_size=4,
    look_ahead=2,
)
DECODER = dict(attention_heads=2, linear_units=24, num_blocks=2, dropout_rate=0.0, positional_dropout_rate=0.0)


def make_config(
    directory: Path,
    encoder_conf: dict | None = None,
    decoder_conf: dict | None = None,
    full_encoder_conf: dict | None = None,
    **changes,
) -> dict:
    """A complete training config, its BPE model and feature statistics beside it.

    `encoder_conf` changes the block encoder's; another `encoder` has a `full_encoder_conf` of its own.
    """
    directory.mkdir(parents=True, exist_ok=True)
    text = directory / "text"
    text.write_text("\n".join(TEXT), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(directory / "bpe"),
        vocab_size=60,
        model_type="unigram",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(directory / "bpe.model"))
    surfaces = [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())]
    rng = np.random.default_rng(0)
    count, features = 100, rng.normal(-5, 2, (100, 20))
    np.savez(directory / "stats.npz", count=count, sum=features.sum(0), sum_square=(features**2).sum(0))
    args = STTask.get_default_config()
    args |= dict(
        token_list=["<blank>", "<unk>", *surfaces, "<sos/eos>"],
        src_token_list=["<blank>", "<unk>", "a", "<sos/eos>"],
        token_type="bpe",
        bpemodel="bpe.model",
        frontend="default",
        frontend_conf=dict(fs=16000, n_fft=512, win_length=400, hop_length=160, n_mels=20),
        normalize="global_mvn",
        normalize_conf=dict(stats_file="stats.npz"),
        specaug=None,
        encoder="contextual_block_transformer",
        encoder_conf=full_encoder_conf or ENCODER | (encoder_conf or {}),
        decoder="transformer",
        decoder_conf=DECODER | (decoder_conf or {}),
        model_conf=dict(asr_weight=0.0, mt_weight=0.0, st_mtlalpha=0.3),
    )
    return args | changes


def write_model(directory: Path, seed: int = 0, **changes) -> dict:
    """Write config.yaml and model.pth with random weights; returns what `load_model` takes."""
    config = make_config(directory, **changes)
    (directory / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    torch.manual_seed(seed)
    absolute = {"stats_file": str(directory / "stats.npz")}
    normalize_conf = absolute if config["normalize"] else {}
    model = STTask.build_model(argparse.Namespace(**config | {"normalize_conf": normalize_conf}))
    with torch.no_grad():
        # Sharper than the initialisation, so that searches differ; the end symbol not too rare.
        model.decoder.output_layer.weight.mul_(3.0)
    torch.save(model.state_dict(), directory / "model.pth")
    return dict(st_train_config=directory / "config.yaml", st_model_file=directory / "model.pth")


def write_language_model(directory: Path, tokens: list[str], kind: str = "transformer") -> dict:
    """Write an ESPnet language model with random weights; returns what `load_model` takes for it."""
    directory.mkdir(parents=True, exist_ok=True)
    conf = dict(att_unit=16, head=2, unit=24, layer=1) if kind == "transformer" else dict(unit=16, nlayers=1)
    config = LMTask.get_default_config() | dict(token_list=tokens, token_type="bpe", lm=kind, lm_conf=conf)
    (directory / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    torch.manual_seed(1)
    model = LMTask.build_model(argparse.Namespace(**config))
    torch.save(model.state_dict(), directory / "lm.pth")
    return dict(lm_train_config=directory / "config.yaml", lm_file=directory / "lm.pth")
