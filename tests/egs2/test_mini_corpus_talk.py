"""The mini corpus: talks, the lines they are cut into, near sentences and the synthesiser."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "egs2/mustc_st_block/local"))
pytest.importorskip("espeakng_loader")

from mini_corpus.content import Neighbourhood, plan
from mini_corpus.synthesis import Voice, applause, laughter, spoken, synthesise
from mini_corpus.talk import Talk, Unit, record, segments


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        row, last = [i], row
        for j, y in enumerate(b, start=1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y)))
    return row[-1]


WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=5)


@given(WORDS, WORDS)
def test_near_means_an_edit_distance_of_one_word_at_most(a, b):
    assert Neighbourhood([" ".join(a)]).near(" ".join(b)) == (edit_distance(a, b) <= 1)


def test_years_are_read_in_halves_and_other_numbers_are_not():
    assert spoken("in 1998, 3.5 million and 300") == "in 19 98, 3.5 million and 300"


def test_speech_does_not_depend_on_what_was_said_before():
    voice = Voice("en-us+f2", 165)
    first = synthesise("The doctor has a plan,", voice)
    synthesise("Something else.", Voice("en", 150))
    assert np.array_equal(synthesise("The doctor has a plan,", voice), first)
    assert first.dtype == np.float32 and 0.05 < np.abs(first).max() <= 1


def test_an_unknown_voice_is_an_error():
    with pytest.raises(RuntimeError, match="nowhere"):
        synthesise("Hello.", Voice("nowhere", 165))


@pytest.mark.parametrize("noise", [applause, laughter])
def test_noises_are_as_long_as_asked_and_do_not_clip(noise):
    samples = noise(2.5, np.random.default_rng(0))
    assert len(samples) == 40000 and 0.05 < np.abs(samples).max() < 1


@pytest.fixture(scope="module")
def train():
    return [talk for talk in plan(seed=0, hours=0.7, test_talks=1) if talk.split == "train"]


def mock_times(talk):
    """Units of a second for every ten letters, half a second between sentences."""
    groups, time = [], 0.5
    for sentence in talk.sentences:
        units = []
        for piece in sentence:
            units.append(Unit(piece, time, time + len(piece["en"]) / 15))
            time = units[-1].end + 0.1
        groups.append(units)
        time += 0.5
    return groups


def test_the_lines_of_a_talk_hold_its_words_once_and_in_order(train):
    for talk in train:
        lines = segments(talk, mock_times(talk))
        for language in ("en", "de", "es", "fr"):
            said = " ".join(piece[language] for sentence in talk.sentences for piece in sentence)
            assert " ".join(line.text[language] for line in lines) == said
        assert all(a.offset + a.duration <= b.offset + 1e-6 for a, b in zip(lines, lines[1:], strict=False))


def test_a_third_of_the_train_lines_is_not_one_sentence(train):
    whole = {" ".join(piece["en"] for piece in sentence) for talk in train for sentence in talk.sentences}
    lines = [line.text["en"] for talk in train for line in segments(talk, mock_times(talk))]
    irregular = sum(line not in whole for line in lines) / len(lines)
    assert 0.25 < irregular < 0.42
    assert any(line[0].islower() for line in lines) and any(line[-1] not in ".?" for line in lines)


def test_a_test_line_is_never_cut_inside_a_sentence(train):
    talk = Talk("dev", 1001, train[0].sentences, "0 dev")
    for line in segments(talk, mock_times(talk)):
        assert not line.text["en"][0].islower() and line.text["en"][-1] in ".?"


def test_a_recording_is_loud_where_its_units_are_and_quiet_between(train):
    talk = Talk("train", 1, train[0].sentences[:3], "0 train")
    samples, groups = record(talk)
    assert samples.dtype == np.int16 and np.abs(samples).max() < 32000
    units = [unit for group in groups for unit in group]
    power = [np.mean(samples[int(unit.start * 16000) : int(unit.end * 16000)] ** 2.0) for unit in units]
    between = [
        np.mean(samples[int(a.end * 16000) + 1 : int(b.start * 16000) - 1] ** 2.0)
        for a, b in zip(units, units[1:], strict=False)
    ]
    assert min(power) > 1000 * max(between) > 0
