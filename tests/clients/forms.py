"""Pure: the forms and links of a page, and where its policy lets a form go."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass
class Button:
    """A button that submits a form; a person reads its `label`."""

    label: str
    name: str = ""
    value: str = ""


@dataclass
class Form:
    """A form with the values that it would send as it stands; `typed` are the names of fields to fill in."""

    action: str
    method: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    buttons: list[Button] = field(default_factory=list)

    def submitted(self, button: Button, changes: dict[str, str]) -> dict[str, list[str]]:
        """The fields sent when `button` is pressed after `changes` were typed or chosen."""
        sent = [(name, value) for name, value in self.fields if name not in changes] + list(changes.items())
        if button.name:
            sent.append((button.name, button.value))
        together: dict[str, list[str]] = {}
        for name, value in sent:
            together.setdefault(name, []).append(value)
        return together


class Page(HTMLParser):
    """The forms and links of an HTML text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self._form: Form | None = None
        self._button: Button | None = None
        self._select: tuple[str, list[tuple[str, bool]]] | None = None
        self._text_area: str | None = None
        self.feed(text)
        self.close()

    def find(self, label: str) -> tuple[Form, Button] | None:
        """The form with a button that says `label`, and the button."""
        for form in self.forms:
            for button in form.buttons:
                if button.label == label:
                    return form, button
        return None

    def labels(self) -> list[str]:
        """Labels of all buttons."""
        return [button.label for form in self.forms for button in form.buttons]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "form":
            self._form = Form(given.get("action", ""), given.get("method", "get").lower())
            self.forms.append(self._form)
        elif self._form is not None and "disabled" not in given:
            self._control(self._form, tag, given)

    def _control(self, form: Form, tag: str, given: dict[str, str]) -> None:
        kind, name = given.get("type", "text").lower(), given.get("name", "")
        if tag == "button" and given.get("type", "submit") == "submit":
            self._button = Button("", name, given.get("value", ""))
            form.buttons.append(self._button)
        elif tag == "input" and kind == "submit":
            form.buttons.append(Button(given.get("value", ""), name, given.get("value", "")))
        elif tag == "input" and name and (kind not in {"checkbox", "radio"} or "checked" in given):
            form.fields.append((name, given.get("value", "on" if kind in {"checkbox", "radio"} else "")))
            if kind != "hidden":
                form.typed.append(name)
        elif tag == "select" and name:
            self._select = (name, [])
        elif tag == "option" and self._select is not None:
            self._select[1].append((given.get("value", ""), "selected" in given))
        elif tag == "textarea" and name:
            form.typed.append(name)
            self._text_area = name

    def handle_data(self, data: str) -> None:
        """Called by the parser."""
        self.words += data.split()
        if self._button is not None:
            self._button.label = " ".join(f"{self._button.label} {data}".split())
        if self._text_area is not None and self._form is not None:
            self._form.fields.append((self._text_area, data))
            self._text_area = None

    def handle_endtag(self, tag: str) -> None:
        """Called by the parser."""
        if tag == "form":
            self._form = None
        elif tag == "button":
            self._button = None
        elif tag == "textarea":
            self._text_area = None
        elif tag == "select" and self._select is not None:
            name, options = self._select
            chosen = [value for value, is_selected in options if is_selected] or [value for value, _ in options[:1]]
            if self._form is not None:
                self._form.fields += [(name, value) for value in chosen]
            self._select = None


def policy_allows_form(policy: str, page_url: str, target: str) -> bool:
    """Whether a form of the page may end at `target`, redirects after it included, under its Content-Security-Policy.

    Chromium holds redirects after a form to `form-action`; a consent page that forgets this works in no browser of that
    family, and in every plain HTTP client.
    """
    for directive in policy.split(";"):
        words = directive.split()
        if words and words[0].lower() == "form-action":
            return any(_matches(source, page_url, target) for source in words[1:])
    return True


def _matches(source: str, page_url: str, target: str) -> bool:
    if source == "'none'":
        return False
    if source == "'self'":
        return _origin(page_url) == _origin(target)
    if source == "*":
        return urlsplit(target).scheme in {"http", "https", urlsplit(page_url).scheme}
    if source.endswith(":"):
        return urlsplit(target).scheme == source[:-1].lower()
    wanted, found = urlsplit(source if "://" in source else f"//{source}"), urlsplit(target)
    if wanted.scheme and wanted.scheme != found.scheme:
        return False
    host, _, port = wanted.netloc.rpartition(":") if ":" in wanted.netloc else (wanted.netloc, "", "")
    same_port = port == "*" or (port or str(DEFAULT_PORTS.get(found.scheme, ""))) == str(_port(target))
    return host.lower() == (found.hostname or "") and same_port


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", _port(url)


def _port(url: str) -> int | None:
    parts = urlsplit(url)
    return parts.port or DEFAULT_PORTS.get(parts.scheme)
