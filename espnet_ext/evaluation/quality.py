"""Quality of a whole test set: BLEU and chrF by sacrebleu, intervals, normalised erasure of re-translation."""

from collections.abc import Sequence
from os.path import commonprefix

import numpy as np
from sacrebleu.metrics import BLEU, CHRF
from scipy.stats import bootstrap

from espnet_ext.errors import UserError
from espnet_ext.log.units import split_units

RESAMPLES = 1000
SEED = 12345  # sacrebleu's
Interval = tuple[float, float]


def _bleu(tgt_lang: str) -> BLEU:
    language = tgt_lang.lower().replace("_", "-").partition("-")[0]
    try:
        # The detokenised text is scored as it is: `force` only silences a guess that it might be tokenised.
        return BLEU(tokenize={"zh": "zh", "ja": "ja-mecab"}.get(language, "13a"), force=True)
    except (ImportError, RuntimeError):
        raise UserError(f"BLEU for tgt_lang {tgt_lang} needs MeCab: pip install 'sacrebleu[ja]'") from None


def quality(hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str) -> dict[str, float | str]:
    """Corpus `BLEU` with its `BLEU_signature`, and `chrF`, of detokenised, case-sensitive text; empty lines count.

    Raises ValueError when the two lists differ in length, UserError when the language's tokeniser is missing.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses for {len(references)} references")
    bleu = _bleu(tgt_lang)
    score = bleu.corpus_score(hypotheses, [references]).score
    return {
        "BLEU": score,
        "BLEU_signature": str(bleu.get_signature()),
        "chrF": CHRF().corpus_score(hypotheses, [references]).score,
    }


def bleu_interval(hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str) -> Interval | None:
    """The 95 % interval of `BLEU` by sacrebleu's bootstrap over lines; None for a single line."""
    if len(hypotheses) < 2:
        return None
    score = _bleu(tgt_lang).corpus_score(hypotheses, [references], n_bootstrap=RESAMPLES)
    return float(score._mean - score._ci), float(score._mean + score._ci)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """The 95 % interval of a mean by bootstrap over the values; None for fewer than two."""
    if len(values) < 2:
        return None
    generator = np.random.default_rng(SEED)
    found = bootstrap((values,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=generator)
    return tuple(map(float, found.confidence_interval))


def normalized_erasure(texts: Sequence[Sequence[str]], tgt_lang: str) -> float | None:
    """Units erased on the way to the final texts, per final unit, over a test set (Arivazhagan et al. 2020).

    `texts` holds, for each utterance, what was shown after each search, the final text last. None when every final
    text is empty.
    """
    erased = final = 0
    for shown in texts:
        units = [split_units(text, tgt_lang) for text in shown]
        erased += sum(
            len(before) - len(commonprefix([before, after])) for before, after in zip(units, units[1:], strict=False)
        )
        final += len(units[-1]) if units else 0
    return erased / final if final else None
