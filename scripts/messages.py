"""The messages of pages: their extraction, the catalogs of languages, and the compiled catalogs.

`python scripts/messages.py` brings locale/*/LC_MESSAGES/django.po up to date with templates and code and compiles it.
`--check` changes nothing and fails where a run would change something, or where an offered language (LANGUAGES in the
settings) has no translation.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from babel.messages.catalog import Catalog, Message  # noqa: E402
from babel.messages.extract import extract  # noqa: E402
from babel.messages.mofile import write_mo  # noqa: E402
from babel.messages.pofile import read_po, write_po  # noqa: E402
from django.conf import settings  # noqa: E402
from django.utils.translation.template import templatize  # noqa: E402

PACKAGES = ("gateway", "audit", "orgs", "billing", "oauth_ext", "credentials", "proxy")
KEYWORDS: dict[str, tuple[int | tuple[int, str], ...] | None] = {
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
    "npgettext_lazy": ((1, "c"), 2, 3),
    "_": None,
    # gateway/lib/sentences.py
    "sentence": None,
    # Why a vendor's answer is of no use: proxy/vendors/errors.py, proxy/protocol/replies.py
    "unavailable": None,
    "bad_response": None,
    "BadVendorReply": None,
}
# templatize() replaces each character that is no message by X.
BLANKED = re.compile(r"\bX+\b")
# Of Python, and of the texts of scripts.
FORMAT = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w+\}")


def sources() -> Iterator[str]:
    """Python that calls the functions of KEYWORDS: templates' calls, modules, and texts of client guides."""
    for path in sorted([*ROOT.glob("templates/**/*.html"), *ROOT.glob("templates/mail/*.txt")]):
        yield python_of(path.read_text(), str(path))
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not {"migrations", "djstripe_migrations"} & set(path.parts):
                yield path.read_text()
    for path in sorted(ROOT.glob("proxy/pages/clients/*.toml")):
        guide = tomllib.loads(path.read_text())
        texts = [guide["client"], guide["group"], guide["where"], guide["again"], *guide["steps"]]
        yield "\n".join(f"sentence({text!r})" for text in texts)


def python_of(template: str, origin: str) -> str:
    """Pure: the calls of a template, each on its line."""
    lines = templatize(template, origin=origin).splitlines()
    return "\n".join(BLANKED.sub("", line).strip() if "gettext(" in line or "_(" in line else "" for line in lines)


def extracted() -> Catalog:
    """All messages of the project, without places: those would change the catalogs with every edit."""
    catalog = Catalog()
    for source in sources():
        for _, message, _, context in extract("python", io.BytesIO(source.encode()), keywords=KEYWORDS):
            catalog.add(message, context=context)
    return catalog


def updated(path: Path, messages: Catalog) -> Catalog:
    """The catalog of a language with exactly these messages. No translation is guessed."""
    with path.open("rb") as file:
        catalog = read_po(file, locale=path.parent.parent.name)
    catalog.update(messages, no_fuzzy_matching=True, update_header_comment=False, update_creation_date=False)
    catalog.obsolete.clear()
    return catalog


def text_of(catalog: Catalog) -> bytes:
    """The .po file."""
    file = io.BytesIO()
    write_po(file, catalog, width=120, sort_output=True, omit_header=False, no_location=True)
    return file.getvalue()


def compiled(catalog: Catalog) -> bytes:
    """The .mo file, which Django reads."""
    file = io.BytesIO()
    write_mo(file, catalog)
    return file.getvalue()


def faults_of(catalog: Catalog) -> list[str]:
    """Messages without a translation, and translations with other placeholders than their message."""
    return [f"{fault}: {message.id!r}" for message in catalog if message.id and (fault := fault_of(message))]


def fault_of(message: Message) -> str:
    sources, texts = forms(message.id), forms(message.string)
    if message.fuzzy or not all(texts):
        return "not translated"
    allowed = set().union(*map(placeholders, sources))
    # A form for one thing may say "one" in place of the number.
    if any(placeholders(text) - allowed for text in texts) or placeholders(texts[-1]) != placeholders(sources[-1]):
        return "other placeholders"
    return ""


def forms(text: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    return (text or "",) if text is None or isinstance(text, str) else tuple(text)


def placeholders(text: str) -> frozenset[str]:
    return frozenset(FORMAT.findall(text))


def is_offered(language: str) -> bool:
    return language in dict(settings.LANGUAGES)


def main() -> int:
    """Update or check every language. Returns the exit code."""
    is_check, messages, faults = "--check" in sys.argv[1:], extracted(), []
    for path in sorted(ROOT.glob("locale/*/LC_MESSAGES/django.po")):
        catalog = updated(path, messages)
        language = path.parent.parent.name
        if is_offered(language) or not is_check:
            faults += [f"{language}: {fault}" for fault in faults_of(catalog)]
        for file, content in ((path, text_of(catalog)), (path.with_suffix(".mo"), compiled(catalog))):
            if is_check and (not file.exists() or file.read_bytes() != content):
                faults.append(f"{file.relative_to(ROOT)} is not up to date: run python scripts/messages.py")
            elif not is_check:
                file.write_bytes(content)
    print("\n".join(faults) or f"{len(messages)} messages")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
