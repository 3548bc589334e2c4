"""`expand`: objects in place of their identifiers."""

from __future__ import annotations

import copy
from typing import Any

from tests.fakes.payment_provider.errors import invalid
from tests.fakes.payment_provider.routing import Api
from tests.fakes.payment_provider.store import Json

DEEPEST = 4


def expanded(api: Api, made: Json, paths: list[str]) -> Json:
    """A copy with the objects that the paths name; `data.` goes through a list. Raises: Refusal."""
    whole = copy.deepcopy(made)
    for path in paths:
        parts = path.split(".")
        if len(parts) > DEEPEST:
            raise invalid("expand", f"You cannot expand more than {DEEPEST} levels of a property ({path}).")
        _expand(api, whole, parts, path)
    return whole


def _expand(api: Api, made: Any, parts: list[str], path: str) -> None:
    if isinstance(made, list):
        for each in made:
            _expand(api, each, parts, path)
        return
    if not parts or made is None:
        return
    name, *rest = parts
    if isinstance(made, dict) and made.get("object") == "checkout.session" and name == "line_items":
        made[name] = api.checkout.line_items(made)
    if not isinstance(made, dict) or name not in made:
        raise invalid("expand", f"This property cannot be expanded ({path}).")
    made[name] = _found(api, made[name])
    _expand(api, made[name], rest, path)


def _found(api: Api, value: Any) -> Any:
    if isinstance(value, list):
        return [_found(api, each) for each in value]
    found = api.store.find(value) if isinstance(value, str) else None
    return copy.deepcopy(found) if found is not None else value
