"""Target tokens: their text, where words begin, which of them count as repeatable."""

from collections.abc import Callable, Sequence, Set
from itertools import pairwise
from pathlib import Path

from espnet2.text.build_tokenizer import build_tokenizer
from espnet2.text.token_id_converter import TokenIDConverter

WORD_MARKER = "▁"


class Vocabulary:
    """The token list of a trained model with its tokenizer (`token_type` and `bpemodel` of its config).

    `symbols` are tokens that are no text.
    """

    def __init__(
        self, token_list: Sequence[str], token_type: str, bpemodel: str | Path | None, symbols: Set[int] = frozenset()
    ) -> None:
        self.token_list = list(token_list)
        self.token_type = token_type
        self.symbols = symbols
        self.converter = TokenIDConverter(token_list=self.token_list)
        self.tokenizer = build_tokenizer(token_type=token_type, bpemodel=None if bpemodel is None else str(bpemodel))
        self.text([])  # ESPnet's tokenizer reads its file at its first use: it is to be this one

    def __len__(self) -> int:
        return len(self.token_list)

    def text(self, ids: Sequence[int]) -> str:
        """Detokenised text of token ids, without blanks at its ends."""
        shown = [token for token in ids if token not in self.symbols]
        return self.tokenizer.tokens2text(self.converter.ids2tokens(shown)).strip()

    def tokens(self, text: str) -> list[int]:
        """Token ids of a text."""
        return self.converter.tokens2ids(self.tokenizer.text2tokens(text))

    def starts_word(self, token: int) -> bool:
        """Whether a word ends before this token."""
        surface = self.token_list[token]
        if self.token_type == "bpe":
            return surface.startswith(WORD_MARKER)
        return surface == "<space>" if self.token_type == "char" else True

    def words(self, ids: Sequence[int]) -> list[Sequence[int]]:
        """The tokens of each word; the first may lack its beginning, the last its end."""
        return split_words(ids, self.starts_word)

    def markers(self) -> frozenset[int]:
        """Tokens whose surface is empty once the word marker is removed: repeating them means nothing."""
        return frozenset(
            token for token, surface in enumerate(self.token_list) if surface in (WORD_MARKER, "<space>", "<blank>")
        )


def split_words(ids: Sequence[int], starts_word: Callable[[int], bool]) -> list[Sequence[int]]:
    """`ids` cut before each token that starts a word."""
    begins = [i for i, token in enumerate(ids) if i == 0 or starts_word(token)]
    return [ids[begin:end] for begin, end in pairwise([*begins, len(ids)])]
