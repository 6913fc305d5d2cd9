"""The keys of a log line, checked: each function raises ValueError naming a key that is missing or of a wrong type."""

import json
import re
import sys
from collections.abc import Mapping

SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)


def parse_object(line: str) -> dict:
    """The JSON object of a log's line. Raises ValueError when it is none, or holds what is no text."""
    try:
        record = json.loads(line)
        if SURROGATE.search(line):
            json.dumps(record, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("not a log's line: nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("half of a character (a lone surrogate, \\ud800 to \\udfff)") from None
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    return record


def get(record: Mapping[str, object], key: str) -> object:
    """A key's value."""
    if key not in record:
        raise ValueError(f"key {key!r} is missing")
    return record[key]


def text(record: Mapping[str, object], key: str) -> str:
    """A string."""
    value = get(record, key)
    if not isinstance(value, str):
        raise ValueError(f"key {key!r} must be a string")
    return value


def _is_number(value: object, whole: bool = False) -> bool:
    kinds = int if whole else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max


def number(record: Mapping[str, object], key: str, whole: bool = False) -> float:
    """A number of at least 0."""
    value = get(record, key)
    if not _is_number(value, whole):
        raise ValueError(f"key {key!r} must be a {'whole ' if whole else ''}number of at least 0, not {value!r}")
    return value


def numbers(record: Mapping[str, object], key: str) -> list[float]:
    """A list of numbers of at least 0."""
    value = get(record, key)
    if not isinstance(value, list) or not all(_is_number(item) for item in value):
        raise ValueError(f"key {key!r} must be a list of numbers of at least 0")
    return value


def texts(record: Mapping[str, object], key: str, single: bool = False) -> list[str]:
    """A list of strings; with `single` a string is a list of one."""
    value = get(record, key)
    if single and isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"key {key!r} must be a list of strings")
    return value


def objects(record: Mapping[str, object], key: str) -> list[dict]:
    """A list of objects."""
    value = get(record, key)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f"key {key!r} must be a list of objects")
    return value
