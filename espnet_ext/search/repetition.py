"""Signs that a hypothesis has run beyond its source: repeated tokens and repeated n-grams."""

from collections.abc import Sequence, Set

LONGEST_NGRAM = 4


def repeats_token(tokens: Sequence[int], ignored: Set[int] = frozenset()) -> bool:
    """Whether the last token occurs earlier in the sequence; tokens without a surface (`ignored`) do not count."""
    return tokens[-1] not in ignored and tokens[-1] in tokens[:-1]


def length_without_repeats(tokens: Sequence[int], limit: int) -> int:
    """Length up to which no n-gram (n = 1 to 4) stands more than `limit` times in a row.

    The sequence is cut before the copy that exceeds the limit.
    """
    for end in range(1, len(tokens) + 1):
        for n in range(1, LONGEST_NGRAM + 1):
            span = n * (limit + 1)
            if span <= end and tokens[end - span : end - n] == tokens[end - span + n : end]:
                return end - n
    return len(tokens)
