import pytest
import sacrebleu

from espnet_ext.errors import UserError
from espnet_ext.evaluation.quality import bleu_interval, mean_interval, normalized_erasure, quality

REFERENCES = ["Das ist (k)ein gutes Beispiel.", "Zweiter Satz, mit Komma.", ""]


def test_equals_sacrebleu_and_carries_its_signature():
    hypotheses = ["Das ist kein Beispiel.", "", "zu viel"]
    scores = quality(hypotheses, REFERENCES, "de")
    assert scores["BLEU"] == sacrebleu.corpus_bleu(hypotheses, [REFERENCES], force=True).score
    assert scores["chrF"] == sacrebleu.corpus_chrf(hypotheses, [REFERENCES]).score
    assert "tok:13a" in scores["BLEU_signature"]
    assert f"version:{sacrebleu.__version__}" in scores["BLEU_signature"]


def test_empty_hypotheses_count():
    full = quality(REFERENCES, REFERENCES, "de")["BLEU"]
    assert full == pytest.approx(100)
    assert quality(["", "", ""], REFERENCES, "de")["BLEU"] == 0
    assert 0 < quality([REFERENCES[0], "", ""], REFERENCES, "de")["BLEU"] < full


def test_lists_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="2 hypotheses for 3"):
        quality(["a", "b"], REFERENCES, "de")


def test_chinese_is_scored_by_character():
    assert "tok:zh" in quality(["我喜欢你"], ["我喜欢他"], "zh-TW")["BLEU_signature"]


def test_japanese_without_mecab_says_what_to_install():
    try:
        assert "tok:ja-mecab" in quality(["あい"], ["あう"], "ja")["BLEU_signature"]
    except UserError as error:
        assert "sacrebleu[ja]" in str(error)


def test_normalised_erasure_counts_what_is_taken_back():
    assert normalized_erasure([["a b", "a c d", "a c d e"]], "de") == pytest.approx(1 / 4)
    assert normalized_erasure([["a b c", ""], ["x", "x y"]], "de") == pytest.approx(3 / 2)


def test_normalised_erasure_of_nothing_is_undefined():
    assert normalized_erasure([["a", ""]], "de") is None
    assert normalized_erasure([], "de") is None


def test_the_interval_of_bleu_holds_the_score_and_is_the_same_every_time():
    hypotheses = ["Das ist kein Beispiel.", "Zweiter Satz.", "zu viel", "Ein Satz, der stimmt."]
    references = [*REFERENCES, "Ein Satz, der stimmt."]
    scores, (low, high) = quality(hypotheses, references, "de"), bleu_interval(hypotheses, references, "de")
    assert low < scores["BLEU"] < high
    assert bleu_interval(hypotheses, references, "de") == (low, high)
    assert quality(hypotheses, references, "de")["BLEU_signature"] == scores["BLEU_signature"]


def test_the_interval_of_a_mean_narrows_with_its_values():
    low, high = mean_interval([1.0, 2.0, 3.0, 4.0])
    assert 1 < low < 2.5 < high < 4
    narrow = mean_interval([1.0, 2.0, 3.0, 4.0] * 25)
    assert low < narrow[0] < 2.5 < narrow[1] < high
    assert narrow[1] - narrow[0] == pytest.approx((high - low) / 5, rel=0.15)
    assert mean_interval([7.0, 7.0, 7.0]) == (7.0, 7.0)


def test_one_value_has_no_interval():
    assert mean_interval([3.0]) is mean_interval([]) is None
    assert bleu_interval(["a"], ["a"], "de") is None
