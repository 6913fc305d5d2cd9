"""Whisper's tokens: byte-level pieces, a blank before each word."""

from collections.abc import Sequence

from transformers import WhisperTokenizer

from espnet_ext.model.vocabulary import split_words

BLANK = "Ġ"  # how a byte-level token shows a blank


class WhisperVocabulary:
    """The tokens of a Whisper model (`espnet_ext.model.protocol.Vocabulary`); `size` is that of its output."""

    def __init__(self, tokenizer: WhisperTokenizer, size: int) -> None:
        self.tokenizer = tokenizer
        self.size = size
        self.ids = tokenizer.get_vocab()
        self.starts = {index for token, index in self.ids.items() if token.startswith(BLANK)}

    def __len__(self) -> int:
        return self.size

    def text(self, ids: Sequence[int]) -> str:
        """Text of token ids, without blanks at its ends, special tokens and timestamps."""
        return self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False).strip()

    def tokens(self, text: str) -> list[int]:
        """Token ids of a text."""
        return self.tokenizer(f" {text.strip()}", add_special_tokens=False).input_ids

    def starts_word(self, token: int) -> bool:
        """Whether a word ends before this token."""
        return token in self.starts

    def words(self, ids: Sequence[int]) -> list[Sequence[int]]:
        """The tokens of each word; the first may lack its beginning, the last its end."""
        return split_words(ids, self.starts_word)

    def markers(self) -> frozenset[int]:
        """The token of a lone blank."""
        return frozenset({self.ids[BLANK]} if BLANK in self.ids else ())
