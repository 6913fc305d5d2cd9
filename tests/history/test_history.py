"""History selection, on hand-written words and attention peaks."""

import pytest

from espnet_ext.history import Attention, FixedDuration, FixedWords, History, Punctuation, Trim, Word


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (1, 1), (3, 3), (5, 3)])
def test_fixed_words_keeps_the_last_ones(count, kept):
    assert FixedWords(3).kept(["w"] * count) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", 0),
        ("ein Haus", 2),
        ("Ja. Ein Haus", 2),
        ("Ja. Ein Haus.", 0),
        ("etwa 3.5 Meter", 3),
        ("Er sagt: ja; nein! wirklich", 1),
        ('Sie sagt „nein." Dann', 1),
        ("これは家です。", 0),
        ("a, b", 2),
    ],
)
def test_punctuation_keeps_what_follows_the_last_strong_mark(text, kept):
    assert Punctuation().kept(text.split()) == kept


def test_attention_keeps_audio_from_the_earliest_frame_of_the_retained_text():
    assert Attention().first_frame([30, 12, 40], 40, 100) == 12
    assert Attention().first_frame([], 40, 100) == 40
    assert Attention().first_frame([], None, 100) == 0


def test_fixed_duration_keeps_the_last_frames():
    assert FixedDuration(70).first_frame([3], 3, 100) == 30
    assert FixedDuration(70).first_frame([], None, 50) == 0


def words(*peaks):
    return [Word(f"w{i}", one) for i, one in enumerate(peaks)]


def history(n=2, text_cap=100, most=1000, least=0):
    return History(FixedWords(n), Attention(), text_cap, most, least)


def test_text_that_goes_takes_its_audio_along():
    assert history().trim(words((5,), (20, 25), (40,), (60, 61)), 100) == Trim(3, 40, False)


def test_nothing_goes_while_all_is_needed():
    assert history(5).trim(words((0,), (20,)), 100) == Trim(0, 0, False)


def test_the_cap_on_tokens_removes_whole_words():
    assert history(5, text_cap=3).trim(words((1, 2), (3, 4), (5,)), 100) == Trim(2, 3, False)


def test_the_cap_on_audio_removes_the_words_whose_audio_is_gone():
    assert history(5, most=50).trim(words((5,), (45, 60), (70,)), 100) == Trim(3, 50, True)
    assert history(5, most=50).trim([], 100) == Trim(0, 50, True)


def test_a_reordered_word_keeps_the_audio_it_came_from():
    assert history(2).trim(words((5,), (80,), (30,)), 100) == Trim(1, 30, False)


def test_frames_that_the_encoder_needs_stay():
    assert history(1, least=40).trim(words((5,), (90,)), 100) == Trim(1, 60, False)
    assert history(1, least=40).trim(words((5,), (20,)), 30) == Trim(1, 0, False)


def test_silence_is_bounded():
    one = history(5, most=50)
    frames = 0
    for _ in range(100):
        frames += 25
        frames -= one.trim([], frames).frames
    assert frames == 50
