"""Faults of the tools around us that the code works round. A test that fails here says that one is mended: then the
workaround named in it can go."""

import subprocess
import sys
from zipfile import ZipFile

import pytest
import torch
from espnet2.legacy.nets.batch_beam_search_online import BatchBeamSearchOnline
from espnet2.main_funcs.pack_funcs import pack
from tiny_model import write_model

from espnet_ext import load_model


def online_search(model, **options):
    return BatchBeamSearchOnline(
        scorers={"decoder": model.module.decoder},
        weights={"decoder": 1.0},
        beam_size=3,
        vocab_size=len(model.vocabulary),
        sos=model.sos,
        eos=model.eos,
        **options,
    )


def test_mweralign_configures_the_root_logger_at_its_import():
    """`espnet_ext.evaluation.segmentation` keeps it from doing so."""
    count = "import logging; print(len(logging.root.handlers), file=sys.stderr)"
    for module, handlers in (("mweralign", "1"), ("espnet_ext.evaluation.segmentation", "0")):
        code = f"import sys, {module}; {count}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr.strip() == handlers


def test_espnet_waits_one_hop_more_than_its_encoder(tiny):
    """`espnet_ext.session` searches over all frames that the encoder has released."""
    search = online_search(tiny, block_size=8, hop_size=4, look_ahead=2)
    with torch.no_grad():
        search(torch.randn(6, 16), is_final=False)
    assert search.processed_block == 0


def test_espnets_streaming_st_uses_its_own_geometry(tiny, tiny_paths):
    """`espnet_ext.model` takes it from the trained encoder."""
    from espnet2.bin.st_inference_streaming import Speech2TextStreaming

    paths = {key: str(value) for key, value in tiny_paths.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tiny_paths["st_train_config"].parent)
        search = Speech2TextStreaming(**paths).beam_search
    assert (search.block_size, search.hop_size, search.look_ahead) == (40, 16, 16)
    assert (tiny.block_size, tiny.hop_size, tiny.look_ahead) == (8, 4, 2)


def test_espnet_prints_about_flash_attention_at_its_import():
    """`espnet_ext.quiet_import` keeps this line from the user's terminal."""
    module = "espnet2.legacy.nets.pytorch_backend.transformer.attention"
    bare = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, check=True)
    assert "Flash Attention" in bare.stderr
    ours = subprocess.run([sys.executable, "-c", "import espnet_ext.model"], capture_output=True, text=True, check=True)
    assert ours.stderr == ""


def test_espnets_streaming_encoder_repeats_frames_without_subsampling(tmp_path):
    """`espnet_ext.model.encoder` does its own buffering."""
    model = load_model(**write_model(tmp_path, encoder_conf=dict(input_layer="linear")))
    states, frames = None, 0
    for step in range(10):
        chunk, length = torch.randn(1, 10, 20), torch.tensor([10])
        released, _, states = model.module.encoder(chunk, length, states, is_final=step == 9, infer_mode=True)
        frames += released.size(1)
    assert frames > 100
    encoder = model.encoder()
    encoder.push(torch.randn(90, 20))
    assert len(encoder.push(torch.randn(10, 20), final=True)) == 100


def test_espnets_pack_keeps_the_clock_and_the_paths_of_the_machine(tmp_path, monkeypatch):
    """`local/pack_models.py` writes the archive itself."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bpe.model").touch()
    (tmp_path / "config.yaml").write_text(f"bpemodel: {tmp_path}/bpe.model\n")
    contents = []
    for name in ("a.zip", "b.zip"):
        pack({}, {"st_train_config": "config.yaml"}, name, ["bpe.model"])
        contents.append({info: ZipFile(name).read(info) for info in ZipFile(name).namelist()})
    assert contents[0]["meta.yaml"] != contents[1]["meta.yaml"]
    assert str(tmp_path).encode() in contents[0]["config.yaml"]
