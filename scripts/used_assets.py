"""Writes the parts of Bootstrap and of the icons that pages use: the rules whose classes a template or a script names,
the variables that those rules read, and the drawings that a template or a page names.

The whole files are kept in scripts/sources, so a page may use another class or icon without a download. This script
(and `make assets`) writes both files again; tests/unit/test_used_assets.py refuses files that lack something.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "scripts" / "sources"
SERVED = ROOT / "gateway" / "static" / "vendor"
ALL_STYLES = SOURCES / "bootstrap-5.3.8" / "bootstrap.min.css"
STYLES = SERVED / "bootstrap-5.3.8" / "bootstrap.subset.css"
ALL_ICONS = SOURCES / "tabler-icons-3.51.0" / "sprite.svg"
ICONS = SERVED / "tabler-icons-3.51.0" / "sprite.svg"
PRODUCT = ("gateway", "audit", "orgs", "billing", "oauth_ext", "credentials", "proxy")
OWN_STYLES = ROOT / "gateway" / "static" / "css"
SCRIPTS = ROOT / "gateway" / "static" / "js"
TEMPLATES = ROOT / "templates"
SYMBOL = re.compile(r'<symbol id="([^"]+)".*\n')
QUOTED = re.compile(r"""["']([a-z0-9-]+)["']""")
CLASS_ATTRIBUTE = re.compile(r'class="([^"]*)"')
WORD = re.compile(r"[A-Za-z][\w-]*")
CLASS = re.compile(r"\.([A-Za-z][\w-]*)")
DECLARED = re.compile(r"(--[\w-]+):(?:[^;{}]*);?")
READ = re.compile(r"var\((--[\w-]+)")
# Matches elements that lack the class.
ABSENCE = re.compile(r":not\([^()]*\)")


def rules(text: str) -> Iterator[tuple[str, str]]:
    """The rules of a minified style sheet: what precedes the braces, and what is between them."""
    start = depth = opened = 0
    for index, character in enumerate(text):
        if character == "{":
            depth += 1
            opened = index if depth == 1 else opened
        elif character == "}":
            depth -= 1
            if depth == 0:
                yield text[start:opened], text[opened + 1 : index]
                start = index + 1


def selectors(head: str) -> list[str]:
    """The parts of a list of selectors; commas inside parentheses separate nothing."""
    return re.split(r",(?![^(]*\))", head)


def kept_rules(text: str, used: frozenset[str]) -> str:
    """The rules that an element with nothing but `used` classes may match."""
    kept = []
    for head, body in rules(text):
        if head.startswith("@keyframes"):
            kept.append(f"{head}{{{body}}}")
        elif head.startswith("@"):
            inner = kept_rules(body, used)
            kept += [f"{head}{{{inner}}}"] if inner else []
        else:
            wanted = [each for each in selectors(head) if used.issuperset(CLASS.findall(ABSENCE.sub("", each)))]
            kept += [f"{','.join(wanted)}{{{body}}}"] if wanted else []
    return "".join(kept)


def without_unread(text: str, others: str) -> str:
    """Without variables without a reader, here or in `others`; the only reader of one may go with it."""
    while True:
        read = frozenset(READ.findall(text + others))
        shorter = re.sub(r"[^{}]+\{\}", "", _with_variables(text, read))
        if shorter == text:
            return text
        text = shorter


def _with_variables(text: str, read: frozenset[str]) -> str:
    return DECLARED.sub(lambda found: found[0] if found[1] in read else "", text)


def without_unused_animations(text: str, others: str) -> str:
    """Without keyframes that no animation names."""
    named = " ".join(re.findall(r"animation[\w-]*:[^;}]*", text + others))
    return re.sub(
        r"@keyframes ([\w-]+)\{(?:[^{}]*\{[^{}]*\})*\}", lambda found: found[0] if found[1] in named else "", text
    )


def used_classes(source: str) -> frozenset[str]:
    """The classes of `source` that a template or a script may give an element."""
    defined = frozenset(CLASS.findall(source))
    words, beginnings = set[str](), set[str]()
    for template in TEMPLATES.rglob("*.html"):
        for value in CLASS_ATTRIBUTE.findall(re.sub(r"\{%.*?%\}", " ", template.read_text(encoding="utf-8"))):
            found = WORD.findall(value)
            words.update(found)
            beginnings.update(re.findall(r"([A-Za-z][\w-]*-)\{\{", value))
    for script in SCRIPTS.glob("*.js"):
        words.update(WORD.findall(" ".join(re.findall(r'"[^"\n]*"', script.read_text(encoding="utf-8")))))
    return frozenset(each for each in defined if each in words or each.startswith(tuple(beginnings)))


def styles() -> str:
    """The style sheet that pages load, with the licence's head."""
    source = ALL_STYLES.read_text(encoding="utf-8")
    head, _, body = source.partition("*/")
    others = "".join(path.read_text(encoding="utf-8") for path in sorted(OWN_STYLES.glob("*.css")))
    kept = kept_rules(body, used_classes(source))
    kept = without_unread(without_unused_animations(kept, others), others)
    return f"{head}*/\n{kept}\n"


def used_words() -> frozenset[str]:
    """Everything in quotation marks that may be an icon's name: in a template, a page or a script."""
    files = [TEMPLATES.rglob("*.html"), SCRIPTS.glob("*.js"), *((ROOT / name).rglob("*.py") for name in PRODUCT)]
    return frozenset(word for some in files for file in some for word in QUOTED.findall(file.read_text("utf-8")))


def icons() -> str:
    """The sprite that pages load."""
    used = used_words()
    return SYMBOL.sub(lambda found: found[0] if found[1] in used else "", ALL_ICONS.read_text(encoding="utf-8"))


def main() -> int:
    for path, text in ((STYLES, styles()), (ICONS, icons())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"{path.stat().st_size:>8}  {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
