"""Language codes of users and of models: `de`, `de-AT` and `deu` are one language."""

from collections.abc import Mapping

from espnet_ext.errors import UserError


def find_language(known: Mapping[str, int], name: str, option: str) -> int:
    """The token of a language among those of a model, by its code of two or three letters; regions are ignored.

    Raises UserError that lists the model's languages when it lacks this one.
    """
    code = name.lower().replace("_", "-").partition("-")[0]
    for candidate in (code, *_other_codes(code)):
        if candidate in known:
            return known[candidate]
    raise UserError(f"{option}: the model has no {name!r}; it has {', '.join(sorted(known)) or 'none'}")


def _other_codes(code: str) -> list[str]:
    """The ISO 639 codes of three letters for one of two, and the other way round."""
    from nltk.langnames import iso639short  # seconds, and only models of three-letter codes need it

    return [long if short == code else short for long, short in iso639short.items() if code in (short, long)]
