"""An S2T model gives the offline result of ESPnet's own `Speech2Text`, and begins with the tokens of a translation."""

import logging

import pytest
import tiny_s2t
import torch
import yaml
from espnet2.bin.s2t_inference import Speech2Text

from espnet_ext import SimulSession, load_model
from espnet_ext.audio.fixed_length import FixedLength
from espnet_ext.errors import UserError
from espnet_ext.search import BeamStep, BlockwiseBeamSearch


@pytest.fixture(scope="module", params=tiny_s2t.ENCODERS)
def directory(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    tiny_s2t.write_s2t(path, encoder=request.param)
    return path


@pytest.fixture(scope="module")
def model(directory):
    return load_model(directory)


def speech_to_text(directory, **options):
    """ESPnet's own, from the same files; it looks for what they name in the working directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        logging.disable(logging.INFO)
        names = dict(s2t_train_config=tiny_s2t.CONFIG, s2t_model_file=tiny_s2t.WEIGHTS)
        options |= dict(lang_sym="<eng>", task_sym="<st_deu>", bpemodel=str(directory / "data" / "bpe.model"))
        return Speech2Text(**names, **options)


@pytest.mark.parametrize("seconds", [0.7, 3.1, 4.0, 5.0])
def test_the_offline_search_of_beam_1_is_espnets(directory, model, speech, seconds):
    theirs = speech_to_text(directory, beam_size=1)
    for seed in range(3):
        samples = speech(seconds, seed)
        _, _, ids, text, _ = theirs(samples)[0]
        session = SimulSession(model, search="offline", beam_size=1, max_ngram_repeats=10**6)
        session.push(samples)
        session.finish()
        after_sos = list(model.start("en", "de")[1:])
        tokens = [*after_sos, *session.search.committed_tokens]
        if len(ids) == len(after_sos) + len(session.encoder.memory):  # at the cap we leave out the last token
            assert tokens == ids[:-1]
        else:
            assert tokens == ids != after_sos
            assert session.text == " ".join(text.split())


@pytest.mark.parametrize(("beam_size", "ctc_weight"), [(5, 0.0), (3, 0.3)])
def test_a_beam_search_by_espnets_rules_finds_espnets_tokens_and_score(directory, model, speech, beam_size, ctc_weight):
    theirs = speech_to_text(directory, beam_size=beam_size, ctc_weight=ctc_weight, maxlenratio=0.0)
    for seed in range(3):
        samples = speech(3, seed)
        hypothesis = theirs(samples)[0][-1]
        weights = {"decoder": 1 - ctc_weight} | ({"ctc": ctc_weight} if ctc_weight else {})
        start = model.start("en", "de")
        size = len(model.vocabulary)
        step = BeamStep(model.scorers(weights), weights, beam_size, size, start, model.suppressed)
        search = BlockwiseBeamSearch(step, model.eos, beam_size, incremental=False, max_ngram_repeats=10**6)
        frontend = FixedLength(model.frontend(), model.max_audio_s, pad=True)
        memory = model.encoder().push(frontend.push(torch.from_numpy(samples), final=True), final=True)
        candidate = search.advance(memory, final=True)
        # At its cap ESPnet appends eos even to what has just ended in it.
        expected = [token for token in hypothesis.yseq.tolist() if token != model.eos]
        assert [*start, *candidate.tokens] == expected
        if len(candidate.tokens) < len(memory) - 1:
            ended = candidate.hypothesis.score + step.force((*candidate.tokens, model.eos), memory).score
            ended -= step.force(candidate.tokens, memory).score
            assert ended == pytest.approx(float(hypothesis.score), abs=1e-3)


def test_the_start_names_languages_and_task(model):
    names = [model.vocabulary.token_list[token] for token in model.start("en", "de")]
    assert names == ["<sos>", "<eng>", "<st_deu>", "<notimestamps>"]
    assert model.start("eng", "deu") == model.start("en-GB", "de_AT") == model.start("en", "de")
    assert model.vocabulary.text([*model.start("en", "zh"), *model.vocabulary.tokens("ein Haus")]) == "ein Haus"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(tgt_lang="es"), "tgt_lang: the model has no 'es'; it has deu, fra, zho"),
        (dict(src_lang="pl"), "src_lang: the model has no 'pl'; it has deu, eng, fra"),
        (dict(search="bwbs"), "search: bwbs needs a block encoder"),
        (dict(policy="align_att"), "align_att_layer: 4 is above the 2 decoder layers"),
        (
            dict(policy="align_att", align_att_layer=1, long_form=True, max_audio_s=4, chunk_ms=2500),
            "chunk_ms: 2500 ms leave no past in the 2 s that the model encodes",
        ),
        (
            dict(policy="align_att", align_att_layer=1, long_form=True, max_audio_s=9.5),
            "max_audio_s: 9.5 is above the model's limit, 4 s",
        ),
    ],
)
def test_an_option_that_the_model_does_not_have_is_named(model, options, message):
    with pytest.raises(UserError, match=message):
        SimulSession(model, **options)


def test_timestamps_are_never_put_out(directory, speech):
    """Though the decoder likes them best."""
    model = load_model(directory)
    with torch.no_grad():
        model.module.decoder.output_layer.bias[list(model.suppressed)] += 100
    session = SimulSession(model, policy="hold_n", hold_n=1)
    session.push(speech(3))
    session.finish()
    assert not set(session.search.committed_tokens) & set(model.suppressed)


def test_a_model_without_ctc_or_decoder_is_refused_what_it_lacks(tmp_path):
    files = tiny_s2t.write_s2t(tmp_path, model_conf=dict(ctc_weight=0.0))
    model = load_model(**files)
    with pytest.raises(UserError, match="ctc_weight: the model was trained without CTC"):
        SimulSession(model, ctc_weight=0.3)
    with pytest.raises(UserError, match="policy: ctc_wait needs a model with CTC"):
        SimulSession(model, policy="ctc_wait")
    config = yaml.safe_load(files["st_train_config"].read_text())
    files["st_train_config"].write_text(yaml.safe_dump(config | dict(model="espnet_ctc")))
    with pytest.raises(UserError, match="a CTC-only model has no decoder to search with"):
        load_model(tmp_path)


def test_precision_is_refused_for_a_decoder_that_espnet_must_run(tmp_path):
    files = tiny_s2t.write_s2t(tmp_path, decoder_conf=tiny_s2t.DECODER | dict(concat_after=True))
    with pytest.raises(UserError, match="precision: not available for this TransformerDecoder"):
        load_model(**files, precision="int8")
    with pytest.raises(UserError, match="decoder: no attention can be had"):
        SimulSession(load_model(**files), policy="align_att")
