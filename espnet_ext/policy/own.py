"""Policies that come from outside the package: their names in logs, and loading them by that name."""

import importlib
import os
import sys

from espnet_ext.errors import UserError


def is_own(name: str) -> bool:
    """Whether the value of the option `policy` names a class, `MODULE:CLASS`."""
    return ":" in name


def own_name(policy: object) -> str:
    """`MODULE:CLASS` of a policy object. Raises UserError for an object that is no policy."""
    name = f"{type(policy).__module__}:{type(policy).__qualname__}"
    for method in ("reset", "stable_length"):
        if not callable(getattr(policy, method, None)):
            raise UserError(f"policy: {name} has no method {method}: see docs/own_policy.md")
    return name


def load_own(name: str) -> object | None:
    """A new policy of the class that `MODULE:CLASS` names, importable from here or the current directory.

    None for one of the project's own names. Raises UserError when there is no such class or it needs arguments.
    """
    if not is_own(name):
        return None
    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute)
        if not isinstance(found, type):
            raise TypeError("not a class")
        policy = found()
    except (ImportError, AttributeError, SyntaxError, TypeError, ValueError) as error:
        raise UserError(f"policy: {name}: {error}; MODULE:CLASS names a class that takes no arguments") from None
    own_name(policy)
    return policy
