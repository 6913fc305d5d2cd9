"""Text history that begins after the last strong punctuation mark (StreamAtt paper, section 3.2)."""

from collections.abc import Sequence

MARKS = (".", "!", "?", ";", ":", "。", "！", "？", "；", "：")
CLOSING = "\"'”’»«“)]"


class Punctuation:
    """Keeps what follows the last word that ends in a strong mark: nothing when the text ends in one."""

    def kept(self, words: Sequence[str]) -> int:
        """How many words, counted from the end, stay. A mark inside a word (3.5) is none."""
        for count, word in enumerate(reversed(words)):
            if word.rstrip(CLOSING).endswith(MARKS):
                return count
        return len(words)
