"""Distillation with a tiny random model of NLLB's architecture, made here, as no other is small enough."""

import os
import shutil
import string
import subprocess
import sys

import distill
import dump_audio
import filter_length
import pytest
from conftest import RECIPE
from kaldi_dir import validate

from espnet_ext.errors import UserError
from espnet_ext.files import read_table
from espnet_ext.lock import locked

ALONE = ("--batch_size", "1")


def write_nllb(directory, languages=("eng_Latn", "deu_Latn"), ends=None):
    """A model of random weights whose tokenizer spells; `ends` makes it end at once (True) or never."""
    import torch
    from transformers import M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer

    symbols = ["<s>", "<pad>", "</s>", "<unk>", "▁", *string.ascii_letters, *string.digits, *",.!'"]
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    tokenizer = NllbTokenizer(vocab=vocabulary, merges=[], additional_special_tokens=list(languages))
    tokenizer.save_pretrained(directory)
    sizes = dict(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2)
    config = M2M100Config(vocab_size=len(tokenizer), encoder_ffn_dim=16, decoder_ffn_dim=16, **sizes)
    torch.manual_seed(11)  # its translations of the sentences below differ, and some do not end
    model = M2M100ForConditionalGeneration(config)
    with torch.no_grad():
        model.model.shared.weight.normal_(std=0.1)
        model.model.shared.weight[config.eos_token_id] *= 2
        for layer in ("v_proj", "out_proj"):
            model.model.decoder.layers[0].encoder_attn.get_submodule(layer).weight *= 10
        if ends is not None:  # the last layer gives the same state whatever comes in
            model.model.decoder.layer_norm.weight.zero_()
            model.model.decoder.layer_norm.bias.fill_(1.0)
            model.model.shared.weight[config.eos_token_id] = 9.0 if ends else -9.0
    model.save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def nllb(tmp_path_factory):
    return write_nllb(tmp_path_factory.mktemp("nllb"))


@pytest.fixture
def dump(release, prepare, tmp_path):
    """Training data of 6 utterances, two of them of the same text."""
    release.write_wav("train", "ted_1.wav", 8.0)
    english = ["Good morning", "We have 25 houses!", "No", "We have 25 houses!", "Why", "The end, then."]
    german = [f"Satz {i}" for i in range(6)]
    release.write_split("train", [release.segment(i, 1.0) for i in range(6)], en=english, de=german)
    dump_audio.main(["--data", str(prepare() / "train.en-de"), "--output_dir", str(tmp_path / "org")])
    options = ["--dump", str(tmp_path / "org"), "--output_dir", str(tmp_path / "dump"), "--tgt_lang", "de"]
    filter_length.main(options)
    return tmp_path / "dump"


def run(dump, model, *options):
    output = dump.with_name("dump_kd")
    directories = ["--dump", str(dump), "--output_dir", str(output), "--work_dir", str(dump.with_name("distill"))]
    distill.main([*directories, "--model", str(model), "--tgt_lang", "de", "--beam_size", "2", *options])
    return output


def test_every_usable_translation_is_a_copy_with_the_audio_of_its_original(dump, nllb, capfd):
    output = run(dump, nllb, "--nj", "2", "--batch_size", "2")
    gold, texts = read_table(dump / "text.tc.de"), read_table(output / "text.tc.de")
    left_out = read_table(output / "left_out")
    copies = {u.removeprefix("kd-"): text for u, text in texts.items() if u not in gold}
    assert copies.keys() == gold.keys() - left_out.keys()
    assert left_out and len(set(copies.values())) > 1
    assert {u: texts[u] for u in gold} == gold
    assert validate(output) == len(gold) + len(copies)
    for name in ("wav.scp", "utt2num_samples", "text.tc.en", "text.lc.rm.en"):
        table = read_table(output / name)
        assert all(table[f"kd-{u}"] == table[u] for u in copies)
    assert (
        f"6 utterances and {len(copies)} distilled copies, {len(left_out)} translations left out (left_out)"
        in capfd.readouterr().out
    )
    run(dump, nllb)
    assert capfd.readouterr().out == f"done already: {output}\n"


def test_the_translation_is_transformers_own(dump, nllb):
    """One sentence without batching, by the library's plain call."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(nllb, src_lang="eng_Latn")
    model = AutoModelForSeq2SeqLM.from_pretrained(nllb)
    model_, tokenizer_ = distill.load(str(nllb), "eng_Latn", "deu_Latn", "float32")
    sentences = ["Good morning", "No", "We have 25 houses!"]
    batched = list(distill.translate(model_, tokenizer_, sentences, "deu_Latn", 3))
    for sentence, translation in zip(sentences, batched, strict=True):
        inputs = tokenizer(sentence, return_tensors="pt")
        bos = tokenizer.convert_tokens_to_ids("deu_Latn")
        tokens = model.generate(**inputs, forced_bos_token_id=bos, num_beams=3, max_new_tokens=512)[0]
        text = tokenizer.decode(tokens, skip_special_tokens=True).strip()
        assert translation == (text if len(text) <= 2 * inputs["input_ids"].shape[1] + 20 else None)


def test_it_goes_on_where_it_was_killed(dump, nllb, capfd):
    run(dump, nllb, *ALONE)
    whole = {path.name: path.read_bytes() for path in dump.with_name("dump_kd").glob("text.*")}
    (work,) = (path for path in dump.with_name("distill").iterdir() if path.is_dir())
    lines = (work / "translations.jsonl").read_bytes().split(b"\n")
    assert len(lines) == 5 + 1, "one line a distinct sentence"
    (work / "translations.jsonl").unlink()
    (work / "part.0.jsonl").write_bytes(lines[0] + b"\n" + lines[1] + b"\n" + lines[2][:8])
    shutil.rmtree(dump.with_name("dump_kd"))
    capfd.readouterr()
    output = run(dump, nllb, *ALONE, "--nj", "3")
    assert "2/5 sentences are translated" in capfd.readouterr().out
    assert {path.name: path.read_bytes() for path in output.glob("text.*")} == whole


def test_shards_share_the_sentences_and_a_last_call_writes(dump, nllb, capfd):
    run(dump, nllb, *ALONE)
    whole = {path.name: path.read_bytes() for path in dump.with_name("dump_kd").glob("text.*")}
    shutil.rmtree(dump.with_name("dump_kd"))
    shutil.rmtree(dump.with_name("distill"))
    capfd.readouterr()
    run(dump, nllb, *ALONE, "--shard", "2/2")
    assert "shard 2 of 2: 2 sentences to translate" in capfd.readouterr().out
    assert not dump.with_name("dump_kd").exists()
    (part,) = dump.with_name("distill").glob("*/part.*.jsonl")
    part.write_bytes(part.read_bytes()[:-8])  # killed in its last line
    run(dump, nllb, *ALONE, "--shard", "2/2")
    assert "shard 2 of 2: 1 sentences to translate" in capfd.readouterr().out
    with locked(part), pytest.raises(UserError, match="another run is at work on it"):
        run(dump, nllb, *ALONE)
    run(dump, nllb, *ALONE, "--shard", "1/2")
    output = run(dump, nllb, *ALONE)
    assert "sentences are translated" not in capfd.readouterr().out
    assert {path.name: path.read_bytes() for path in output.glob("text.*")} == whole
    with pytest.raises(SystemExit):
        run(dump, nllb, *ALONE, "--shard", "3/2")
    assert "'3/2' is not I/N with I from 1 to N" in capfd.readouterr().err


def test_translations_of_another_model_or_beam_are_not_taken_for_these(dump, nllb, tmp_path):
    run(dump, nllb)
    run(dump, nllb, "--beam_size", "3")
    run(dump, write_nllb(tmp_path / "nllb_too"))
    assert sum(path.is_dir() for path in dump.with_name("distill").iterdir()) == 3


@pytest.mark.parametrize(("ends", "reason"), [(True, "is empty"), (False, "has more than twice")])
def test_without_a_usable_translation_nothing_is_written(dump, tmp_path, ends, reason):
    with pytest.raises(UserError, match=f"no translation of 6 is usable; that of ted_00001-00001 {reason}"):
        run(dump, write_nllb(tmp_path / "nllb", ends=ends))
    assert not dump.with_name("dump_kd").exists()


def test_empty_and_endless_translations_are_listed_and_left_out(dump, tmp_path):
    source = read_table(dump / "text.tc.en")
    fate = dict.fromkeys(source.values(), "gut") | {"No": "", "We have 25 houses!": None}
    output = tmp_path / "out"
    output.mkdir()
    assert distill.write_distilled(dump, output, fate, "de") == (3, 3)
    assert read_table(output / "left_out") == {
        "ted_00001-00002": distill.NOT_ENDED,
        "ted_00001-00003": "is empty",
        "ted_00001-00004": distill.NOT_ENDED,
    }
    assert [text for u, text in read_table(output / "text.tc.de").items() if u.startswith("kd-")] == ["gut"] * 3


def test_a_model_that_cannot_translate_is_one_line(dump, tmp_path):
    with pytest.raises(UserError, match=r"--model .*nowhere: cannot be loaded"):
        run(dump, tmp_path / "nowhere")
    with pytest.raises(UserError, match="no language code deu_Latn"):
        run(dump, write_nllb(tmp_path / "french", languages=("eng_Latn", "fra_Latn")))
    with pytest.raises(UserError, match="no NLLB code known for language xx; known are ar, "):
        run(dump, tmp_path, "--tgt_lang", "xx")


def test_ids_cannot_collide(dump, nllb):
    for path in (path for path in dump.iterdir() if path.is_file() and path.name != ".done"):
        path.write_text(path.read_text(encoding="utf-8").replace("ted_00001", "kd-ted_00001"), encoding="utf-8")
    with pytest.raises(UserError, match="kd-ted_00001-00001 has the prefix of distilled copies"):
        run(dump, nllb)


def test_other_programs_do_not_pay_for_transformers():
    code = "import sys, distill, train_models, espnet_ext; sys.exit('transformers' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": f"{RECIPE / 'local'}:{os.environ.get('PYTHONPATH', '')}"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
