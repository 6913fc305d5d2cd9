"""A Whisper model computes what transformers computes: features, encoder, decoder, the whole of a decoding."""

import json
import sys

import numpy as np
import pytest
import tiny_whisper
import torch
from transformers import WhisperForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

from espnet_ext import SimulSession, load_model
from espnet_ext.audio.whisper_frontend import scale
from espnet_ext.errors import UserError


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tiny_whisper.write_whisper(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def model(directory):
    return load_model(directory)


@pytest.fixture(scope="module")
def theirs(directory):
    return WhisperForConditionalGeneration.from_pretrained(directory, attn_implementation="eager").eval()


@pytest.mark.parametrize("count", [201, 399, 400, 16000, 16161, 40000])
@pytest.mark.parametrize("cut", [100, 1000, 50000])
def test_features_are_the_extractors_however_the_samples_come(model, speech, count, cut):
    samples = speech(3)[:count]
    expected = model.extractor(samples, sampling_rate=16000, padding=False, return_tensors="pt").input_features[0].T
    frontend = model.frontend()
    parts = [frontend.push(torch.from_numpy(samples[begin : begin + cut])) for begin in range(0, count, cut)]
    parts.append(frontend.push(torch.zeros(0), final=True))
    torch.testing.assert_close(scale(torch.cat(parts)), expected, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_the_encoder_of_a_cropped_window_is_transformers_with_sliced_positions(model, theirs):
    features = torch.randn(240, 20)
    config = json.loads(theirs.config.to_json_string()) | {"max_source_positions": 120}
    short = WhisperForConditionalGeneration(type(theirs.config)(**config)).eval()
    weights = theirs.state_dict()
    positions = "model.encoder.embed_positions.weight"
    short.load_state_dict(weights | {positions: weights[positions][:120]})
    expected = short.model.encoder(scale(features).T[None]).last_hidden_state[0]
    torch.testing.assert_close(model.encode(features), expected, atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_the_decoder_scores_every_prefix_as_a_full_forward_of_transformers(model, theirs):
    """Prefixes of 1 to 50 tokens over a cropped memory, forced at once and grown step by step; attention too."""
    memory = model.encode(torch.randn(211, 20))
    prefix = torch.cat([torch.tensor(model.start("de", "en")), torch.randint(0, 200, (46,))])
    full = theirs(encoder_outputs=BaseModelOutput(memory[None]), decoder_input_ids=prefix[None], output_attentions=True)
    expected = full.logits[0].log_softmax(-1)
    heads = model.attention_heads(None)
    assert heads == {1: [0], 2: [1, 3]}
    attention = torch.stack([full.cross_attentions[layer][0, head] for layer in heads for head in heads[layer]]).mean(0)
    decoder = model.scorers(["decoder"], heads)["decoder"]
    scores, _ = decoder.score_prefix(prefix, memory)
    torch.testing.assert_close(scores, expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(decoder.attention, attention, atol=1e-5, rtol=1e-4)
    decoder, state = model.scorers(["decoder"], heads)["decoder"], [None]
    for length in range(1, 51):
        score, state = decoder.batch_score(prefix[None, :length], state, memory[None])
        torch.testing.assert_close(score[0], expected[length - 1], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(decoder.attention[0], attention[length - 1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("seconds", [0.5, 2.7, 4.0])
def test_the_offline_search_of_beam_1_is_transformers_greedy_generation(model, theirs, speech, seconds):
    """Padded to the window, suppressed tokens and forced start included."""
    for seed in range(4):
        samples = speech(seconds, seed)
        inputs = model.extractor(samples, sampling_rate=16000, return_tensors="pt").input_features
        generated = theirs.generate(inputs, language="de", task="translate", num_beams=1, do_sample=False)[0].tolist()
        expected = model.vocabulary.text(generated)
        session = SimulSession(
            model, search="offline", beam_size=1, src_lang="de", tgt_lang="en", max_ngram_repeats=1000
        )
        session.push(samples)
        session.finish()
        assert session.text == " ".join(expected.split()) != ""
        tokens = [token for token in generated if token not in (*model.start("de", "en"), model.eos)]
        assert list(session.search.committed_tokens) == tokens


def test_text_is_words_and_its_tokens(model):
    vocabulary = model.vocabulary
    ids = vocabulary.tokens("she will buy naïve books")
    assert vocabulary.text([*model.start("de", "en"), *ids, model.eos]) == "she will buy naïve books"
    words = vocabulary.words(ids)
    assert [vocabulary.text(word) for word in words] == ["she", "will", "buy", "naïve", "books"]


def test_without_alignment_heads_the_upper_half_of_the_layers_is_used(tmp_path):
    model = load_model(tiny_whisper.write_whisper(tmp_path, generation=dict(alignment_heads=None)))
    assert model.attention_heads(None) == {1: range(4), 2: range(4)}
    assert model.attention_heads(1) == {0: range(4)}
    (tmp_path / "attention.json").write_text('{"recommended_layer": 3}')
    assert load_model(tmp_path).attention_heads(None) == {2: range(4)}


def test_an_output_ends_at_the_decoders_last_position(tmp_path, speech):
    """A model that never ends by itself: the positions of the decoder do not run out."""
    path = tiny_whisper.write_whisper(tmp_path, max_target_positions=20)
    config = json.loads((path / "generation_config.json").read_text())
    config["suppress_tokens"].append(config["eos_token_id"])
    (path / "generation_config.json").write_text(json.dumps(config))
    model = load_model(path)
    for options in (dict(search="offline"), dict(search="ibwbs", policy="hold_n", hold_n=0), dict(search="standard")):
        session = SimulSession(model, tgt_lang="en", max_ngram_repeats=1000, reliability=False, **options)
        session.push(speech(3))
        session.finish()
        assert len(session.search.committed_tokens) == model.max_tokens - 1 == 16


@pytest.mark.parametrize(("precision", "tolerance"), [("bfloat16", 0.5), ("int8", 1.0)])
@torch.inference_mode()
def test_lower_precision_comes_close(directory, model, precision, tolerance):
    memory = model.encode(torch.randn(100, 20))
    prefix = torch.tensor(model.start("de", "en"))
    exact, _ = model.scorers()["decoder"].score_prefix(prefix, memory)
    scores, _ = load_model(directory, precision=precision).scorers()["decoder"].score_prefix(prefix, memory)
    assert 0 < (scores - exact).abs().mean() < tolerance


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(tgt_lang="de"), "tgt_lang: the model has no 'de'; it has en"),
        (dict(tgt_lang="en", src_lang="pl"), "src_lang: the model has no 'pl'; it has de, en, fr"),
        (dict(tgt_lang="en", ctc_weight=0.3), "ctc_weight: not available for Whisper models"),
        (dict(tgt_lang="en", lm_weight=0.3), "lm_weight: not available for Whisper models"),
        (
            dict(tgt_lang="en", policy="align_att", align_att_layer=4),
            "align_att_layer: 4 is above the 3 decoder layers",
        ),
        (dict(tgt_lang="en", policy="ctc_wait"), "policy: ctc_wait needs a model with CTC"),
        (dict(tgt_lang="en", search="bwbs"), "search: bwbs needs a block encoder"),
        (
            dict(tgt_lang="en", policy="align_att", long_form=True, max_audio_s=5),
            "max_audio_s: 5 is above the model's limit, 4 s",
        ),
    ],
)
def test_an_option_that_the_model_does_not_have_is_named(model, options, message):
    with pytest.raises(UserError, match=message):
        SimulSession(model, **options)


def test_a_language_model_is_refused(directory):
    with pytest.raises(UserError, match="lm_train_config: a Whisper model takes no language model"):
        load_model(directory, lm_train_config="lm.yaml", lm_file="lm.pth")


def spoil(directory, name, change):
    path = directory / name
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: spoil(d, "generation_config.json", lambda c: c.update(is_multilingual=False)), "English-only"),
        (lambda d: spoil(d, "config.json", lambda c: c.update(model_type="t5")), "a model of type 't5'"),
        (lambda d: spoil(d, "config.json", lambda c: c.pop("model_type")), "names no model_type"),
        (lambda d: spoil(d, "config.json", lambda c: c.update(d_model=48)), "not a whole Whisper model"),
        (lambda d: spoil(d, "config.json", lambda c: c.update(decoder_layers=4)), "24 parameters have no value"),
        (lambda d: (d / "model.safetensors").unlink(), "no model.safetensors in it"),
        (lambda d: (d / "model.safetensors").write_bytes(b"x" * 100), "not a whole Whisper model"),
        (lambda d: (d / "tokenizer.json").unlink(), "its tokenizer is not the model's"),
        (lambda d: (d / "preprocessor_config.json").unlink(), "not a whole Whisper model"),
    ],
)
def test_a_directory_that_is_not_a_whole_model_is_named_in_one_line(tmp_path, change, message):
    change(tiny_whisper.write_whisper(tmp_path))
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(UserError, match=message) as raised:
        load_model(tmp_path)
    assert "\n" not in str(raised.value)


def test_audio_beyond_the_window_is_left_out_with_a_warning(model, speech, caplog):
    samples = np.concatenate([speech(4), speech(3, seed=5)])
    session = SimulSession(model, tgt_lang="en", policy="hold_n", hold_n=1)
    session.reset("long-one")
    for begin in range(0, len(samples), 5000):
        session.push(samples[begin : begin + 5000])
    session.finish()
    assert "long-one: only the first 4 s are translated; longer audio needs long_form" in caplog.text
    assert len(session.encoder.memory) == 200 and session.text


def test_without_transformers_the_extra_to_install_is_named(directory, monkeypatch):
    for name in [name for name in sys.modules if "whisper" in name and name.startswith("espnet_ext")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"a Whisper model; install espnet-ext\[whisper\]"):
        load_model(directory)
