"""Decision records: one number each, the same in the file's name and in its title."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

RECORDS = sorted((Path(__file__).resolve().parents[2] / "docs" / "decisions").glob("*.md"))


def test_every_record_has_a_number_of_its_own() -> None:
    numbers = Counter(path.name[:4] for path in RECORDS)
    assert len(numbers) > 15
    assert [number for number, records in numbers.items() if records > 1] == []


def test_titles_have_the_number_of_the_file() -> None:
    titles = {path.name: path.read_text().splitlines()[0] for path in RECORDS}
    assert [name for name, title in titles.items() if not re.match(rf"# {name[:4]}\b", title)] == []
