"""History selection on endless audio (StreamAtt paper): one small pure class a file."""

from espnet_ext.history.attention import Attention
from espnet_ext.history.fixed_duration import WORD_MS, FixedDuration
from espnet_ext.history.fixed_words import FixedWords
from espnet_ext.history.history import History, Trim, Word
from espnet_ext.history.punctuation import Punctuation

__all__ = ["WORD_MS", "Attention", "FixedDuration", "FixedWords", "History", "Punctuation", "Trim", "Word"]
