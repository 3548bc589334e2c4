"""The OpenAPI document does not change without an entry in docs/guide/api-changes.md."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from gateway.site.api_docs import document

CHANGES = Path("docs/guide/api-changes.md")
# Words and examples may be improved. Numbers of limits are settings.
WORDS = {"description", "summary", "example", "title", "info"}


def without_words(value: Any, *, is_named: bool = False) -> Any:
    """`is_named`: the keys are names of things, such as members, and none is a word of the document."""
    if isinstance(value, dict):
        return {
            name: without_words(part, is_named=name in {"properties", "schemas", "paths", "responses"})
            for name, part in value.items()
            if is_named or name not in WORDS
        }
    return [without_words(part) for part in value] if isinstance(value, list) else value


def fingerprint(made: Any) -> str:
    """12 hexadecimal digits."""
    text = json.dumps(without_words(json.loads(json.dumps(made))), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def entries() -> list[tuple[str, str]]:
    """(fingerprint, text) of each entry, newest first."""
    parts = re.split(r"^## Document `([0-9a-f]{12})`$", CHANGES.read_text(), flags=re.M)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def test_the_newest_entry_is_of_this_document() -> None:
    newest, text = entries()[0]
    assert re.search(r"^\* \w", text, flags=re.M), "an entry says what changed"
    assert newest == fingerprint(document()), (
        f"The API has changed. Put an entry above the others in {CHANGES}: "
        f"'## Document `{fingerprint(document())}`' and a line for each change."
    )


def test_each_document_has_one_entry() -> None:
    found = [each for each, _ in entries()]
    assert len(set(found)) == len(found)


def test_a_change_is_seen_and_other_words_are_none() -> None:
    made = json.loads(json.dumps(document()))
    path = made["paths"]["/api/profile"]["get"]
    path["summary"] = path["description"] = "Other words"
    assert fingerprint(made) == fingerprint(document())
    made["components"]["schemas"]["Team"]["properties"]["summary"] = {"type": "string"}
    assert fingerprint(made) != fingerprint(document())
