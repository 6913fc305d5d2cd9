"""Which decodes belong together: the curve of a search and a policy, the model a figure is about, names for people."""

from collections.abc import Iterable

from espnet_ext.evaluation.results import Decode
from espnet_ext.evaluation.tradeoff import Point

BLOCK_SEARCHES = (("ibwbs", True), ("ibwbs", False), ("bwbs_incremental", True))  # search, reliability
CURVE_POLICIES = ("hold_n", "local_agreement")
SEARCH_NAMES = {
    "offline": "Offline",
    "standard": "Standard beam search",
    "bwbs": "BWBS re-translation",
    "bwbs_incremental": "BWBS",
    "ibwbs": "IBWBS",
}
POLICY_NAMES = {"all": "no policy", "hold_n": "hold-n", "local_agreement": "local agreement", "align_att": "AlignAtt"}


def search_name(search: str, reliability: bool = True) -> str:
    """The search as tables and figures name it."""
    return SEARCH_NAMES.get(search, search) + ("" if reliability else " without reliability")


def policy_name(decode: Decode) -> str:
    """The policy with its value: `hold-6`, `local agreement 2`; a dash where it has no meaning."""
    if decode.search in ("offline", "bwbs"):
        return "-"
    if decode.policy == "hold_n":
        return f"hold-{decode.policy_value}"
    name = POLICY_NAMES.get(decode.policy, decode.policy)
    return name if decode.policy_value is None else f"{name} {decode.policy_value}"


def policy_and_options(decode: Decode) -> str:
    """The policy and what else was changed: `local agreement 2, ctc_weight 0.3`."""
    return ", ".join([policy_name(decode), *(f"{option} {value}" for option, value in decode.further.items())])


def languages(decodes: Iterable[Decode]) -> list[str]:
    """Target languages, sorted."""
    return sorted({str(decode.get("tgt_lang")) for decode in decodes})


def select(decodes: Iterable[Decode], search: str, policy: str | None = None, reliability: bool = True) -> list[Decode]:
    """The decodes of one search (and policy, and reliability), in their order: a curve when the policy is given.

    Decodes with further options changed belong to no curve.
    """
    return [
        decode
        for decode in decodes
        if decode.search == search
        and policy in (None, decode.policy)
        and decode.reliability == reliability
        and not decode.further
    ]


def points(decodes: Iterable[Decode]) -> list[Point]:
    """The decodes on the LAAL-BLEU plane; those without a latency are left out."""
    return [
        Point(decode.system, decode.get("LAAL"), decode.get("BLEU"), decode.get("words_at_end"))
        for decode in decodes
        if decode.get("LAAL") is not None
    ]


def policy_points(decodes: Iterable[Decode], search: str, reliability: bool = True) -> list[Point]:
    """All points of a search that a policy controls."""
    chosen = select(decodes, search, None, reliability)
    return points(decode for decode in chosen if decode.policy in CURVE_POLICIES)


def block_models(decodes: Iterable[Decode]) -> dict[str, list[Decode]]:
    """For each language, the decodes of the block model with the most policy points, the larger block in a tie.

    The papers show its curves (block 40); the other models appear as single points.
    """
    models: dict[tuple[str, str], list[Decode]] = {}
    for decode in decodes:
        if decode.block_size is not None:
            models.setdefault((str(decode.get("tgt_lang")), decode.model), []).append(decode)
    chosen: dict[str, list[Decode]] = {}
    for (lang, _), members in sorted(models.items()):
        if lang not in chosen or _rank(members) > _rank(chosen[lang]):
            chosen[lang] = members
    return chosen


def _rank(members: list[Decode]) -> tuple[int, int]:
    return sum(decode.policy in CURVE_POLICIES for decode in members), members[0].block_size or 0
