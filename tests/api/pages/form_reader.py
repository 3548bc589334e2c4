"""Forms and links of a page as a browser without scripts has them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from django.urls import resolve

from gateway.lib import clock

Fields = tuple[tuple[str, str], ...]
# Fields that a person fills in; others are sent as the page has them.
TYPED = {
    "emails": "new.person@example.com",
    "name": "Something new",
    "key_name": "Something new",
    "label": "Something new",
    "issuer": "https://idp.example",
    "reason": "For the night shift",
    "apiKey": "right-key",
    "endpointUrl": "https://dce-a1b2.eastus-1.ingest.monitor.azure.com",
    "config.token": "a-token-of-the-platform",
    "config.username": "a-user",
    "config.password": "a-password-of-the-platform",
    "config.index": "gateway",
    "config.tenantId": "11111111-2222-3333-4444-555555555555",
    "config.clientId": "66666666-7777-8888-9999-000000000000",
    "config.clientSecret": "a-secret-of-the-platform",
    "config.dcrImmutableId": "dcr-0123456789abcdef0123456789abcdef",
    "config.stream": "Custom-Gateway_CL",
}
NEVER_CHOSEN = {"", "date"}  # "date" needs a second field


@dataclass(frozen=True)
class Submission:
    """One button of a form that is pressed: the address that its fields are posted to."""

    path: str
    fields: Fields

    @property
    def action(self) -> tuple[str, ...]:
        """The page's name, the fields, and the button's own value: the same for all that the button does it to."""
        found = resolve(urlsplit(self.path).path)
        button = [value for name, value in self.fields if name == "action"]
        return (found.view_name, *sorted({name for name, _ in self.fields}), *button)

    def moved(self, old: str, new: str) -> Submission:
        """The same form with another id in its address."""
        return replace(self, path=self.path.replace(old, new))

    def chosen(self) -> list[tuple[str, str]]:
        """The fields but for those that a person filled in."""
        return [(name, value) for name, value in self.fields if TYPED.get(name) != value]

    def data(self) -> dict[str, list[str]]:
        """For Django's test client."""
        found: dict[str, list[str]] = {}
        for name, value in self.fields:
            found.setdefault(name, []).append(value)
        return found


@dataclass
class _Form:
    path: str
    is_post: bool
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[Fields] = field(default_factory=list)
    radios: list[tuple[str, str]] = field(default_factory=list)

    @property
    def filled_in(self) -> Fields:
        """A person chooses the first of a group of radio buttons of which the page chose none."""
        given = dict(self.fields)
        first = {name: value for name, value in reversed(self.radios) if name not in given}
        return (*self.fields, *first.items())


class PageReader(HTMLParser):
    """`links` are paths with their queries; `submissions` has one for each button of a form that posts."""

    def __init__(self, path: str, page: str) -> None:
        super().__init__()
        self._path = path
        self._forms: dict[str, _Form] = {}
        self._open = ""
        self._select = ("", "")  # the form and the name
        self._lists: dict[str, tuple[str, str]] = {}  # the same, of empty fields by the list that they offer
        self._options: list[tuple[str, bool]] = []
        self._links: set[str] = set()
        self.feed(page)

    @property
    def links(self) -> set[str]:
        return {urljoin(self._path, href) for href in self._links}

    @property
    def submissions(self) -> list[Submission]:
        return [
            Submission(form.path, (*form.filled_in, *button))
            for form in self._forms.values()
            if form.is_post
            for button in form.buttons
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and given.get("href", "#").startswith(("/", "?")):
            self._links.add(given["href"].partition("#")[0] or self._path)
        elif tag == "form":
            self._open = given.get("id") or f"form {len(self._forms)}"
            form = self._form(self._open)
            form.path = urljoin(self._path, given.get("action") or self._path)
            form.is_post = given.get("method") == "post"
        elif tag == "select":
            self._select = (given.get("form") or self._open, given.get("name", ""))
            self._options = []
        elif tag == "datalist" and given.get("id") in self._lists:
            self._select, self._options = self._lists[given["id"]], []
        elif tag == "input" and self._open and given.get("list") and not given.get("value"):
            self._lists[given["list"]] = (self._open, given.get("name", ""))
        elif tag == "option" and self._select[1]:
            self._options.append((given.get("value", ""), "selected" in given))
        elif "disabled" not in given and (owner := given.get("form") or self._open):
            self._handle_control(tag, given, self._form(owner))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = ""
        elif tag in {"select", "datalist"}:
            owner, name = self._select
            chosen = [value for value, is_selected in self._options if is_selected]
            chosen += [value for value, _ in self._options if value not in NEVER_CHOSEN]
            if owner and name and chosen:
                self._form(owner).fields.append((name, chosen[0]))
            self._select = ("", "")

    def _form(self, name: str) -> _Form:
        """A control may precede the form that it names."""
        return self._forms.setdefault(name, _Form(self._path, is_post=False))

    @staticmethod
    def _handle_control(tag: str, given: dict[str, str], form: _Form) -> None:
        name, value, kind = given.get("name", ""), given.get("value", ""), given.get("type", "")
        if tag == "button" and kind in {"", "submit"}:
            form.buttons.append(((name, value),) if name else ())
        elif tag == "textarea" and name:
            form.fields.append((name, TYPED.get(name, "")))
        elif tag == "input" and name and kind == "radio" and "checked" not in given:
            form.radios.append((name, value))
        elif tag == "input" and name and name != "csrfmiddlewaretoken" and (kind != "checkbox" or "checked" in given):
            hour_ago = f"{clock.now() - timedelta(hours=1):%Y-%m-%dT%H:%M}" if kind == "datetime-local" else ""
            form.fields.append((name, given.get("data-confirm-text") or value or TYPED.get(name, hour_ago)))
