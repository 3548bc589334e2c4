"""The editor of the lists of a vendor's resources and prompts, of a role or of an agent. docs/decisions/0115

Works without scripts. The vendor is asked only by a button, and what it answers is not kept.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext

from gateway.lib.errors import DomainError, NotFound
from gateway.lib.translated import sentences_of, translated
from gateway.web.gate import Gate
from orgs import selectors
from orgs.allowed_items import ItemType
from orgs.errors import AllowlistChanged
from orgs.roles import Role
from orgs.services.item_access import item_type_named
from proxy.control_plane.vendor_items import Items, VendorItem, items_for
from proxy.pages.tool_editor import Holder
from proxy.protocol.item_kinds import ItemKind

# Entries of the vendor with a box of their own; the others are typed.
MOST_OFFERED = 500
_KINDS = {ItemType.RESOURCES: (ItemKind.RESOURCE, ItemKind.TEMPLATE), ItemType.PROMPTS: (ItemKind.PROMPT,)}


# Of the pages with this editor.
GATES = {
    "GET": Gate(Role.ADMIN),
    "POST": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS),
    "POST save": Gate(Role.OWNER),
}


class StoredItems(Protocol):
    """The row of a list, of a role or of an agent."""

    entries: Any
    updated_at: Any
    updated_by: Any

    @property
    def version(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ItemChoice:
    """`is_list` False: no list. `version`: of the list that it was made from; "" without one."""

    is_list: bool
    entries: tuple[str, ...]
    version: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A choice that was not stored, and why."""

    kind: ItemType
    choice: ItemChoice
    status: int
    fault: str = ""
    conflict: AllowlistChanged | None = None
    asks_about_empty: bool = False


class ItemEditor:
    """The part of a page that edits the lists; mixed into an `OrgPage` with `vendor`."""

    template: str
    request: HttpRequest

    @abstractmethod
    def holder(self) -> Holder:
        """Raises: NotFound."""

    @abstractmethod
    def stored(self) -> Mapping[str, StoredItems]:
        """By type."""

    @abstractmethod
    def store(self, kind: ItemType, choice: ItemChoice) -> None:
        """Raises: AllowlistChanged and other refusals."""

    @abstractmethod
    def has_tool_list(self) -> bool:
        """Whether the holder has a list of the vendor's tools, which closes what has no list of its own."""

    def own_context(self) -> dict[str, Any]:
        return {}

    def get(self, request: HttpRequest, **path: Any) -> HttpResponse:
        self.holder()
        return self._shown()

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        """Raises: NotFound."""
        self.holder()
        if request.POST.get("action") == "save":
            return self._save()
        try:
            offered = items_for(self.membership, self.vendor)  # type: ignore[attr-defined]
        except NotFound:
            raise
        except DomainError as refusal:
            return self._shown(fault=translated(refusal.message))
        return self._shown(offered)

    def _save(self) -> HttpResponse:
        kind, choice = item_type_named(self.request.POST.get("kind", "")), _from_form(self.request.POST)
        if choice.is_list and not choice.entries and self.request.POST.get("confirm") != "empty":
            return self._shown(refused=Refused(kind, choice, 422, asks_about_empty=True))
        try:
            self.store(kind, choice)
        except AllowlistChanged as conflict:
            return self._shown(refused=Refused(kind, choice, 409, conflict=conflict))
        except DomainError as refusal:
            if refusal.status not in {400, 422}:
                raise
            return self._shown(refused=Refused(kind, choice, 422, fault=sentences_of(refusal)))
        messages.success(self.request, _saved(self.holder(), kind, choice))
        query = self.holder().query
        return redirect(f"{self.request.path}?{query}" if query else self.request.path)

    def _shown(self, offered: Items | None = None, *, fault: str = "", refused: Refused | None = None) -> HttpResponse:
        page: Any = self
        may_edit = page.membership.has_role(Role.OWNER)
        rows = self.stored()
        context = {
            "holder": self.holder(),
            "own": f"?{self.holder().query}",
            "may_edit": may_edit,
            "owners": () if may_edit else selectors.people_who_may(page.organization, Role.OWNER),
            "fault": fault,
            "is_loaded": offered is not None,
            "lists": [self._section(kind, rows.get(kind.value), offered, refused) for kind in ItemType],
            **self.own_context(),
        }
        response: HttpResponse = page.page(self.template, context, status=refused.status if refused else 200)
        return response

    def _section(
        self, kind: ItemType, row: StoredItems | None, offered: Items | None, refused: Refused | None
    ) -> dict[str, Any]:
        mine = refused if refused is not None and refused.kind is kind else None
        choice = mine.choice if mine else _from_row(row)
        shown: Sequence[VendorItem] = [] if offered is None else [e for each in _KINDS[kind] for e in offered[each]]
        boxes = shown[:MOST_OFFERED]
        known = {each.own for each in boxes}
        return {
            "kind": kind.value,
            "title": gettext("Resources") if kind is ItemType.RESOURCES else gettext("Prompts"),
            "row": row,
            "is_closed": row is None and self.has_tool_list(),
            "choice": choice,
            "offered": [(each, each.own in choice.entries) for each in boxes],
            "not_shown": len(shown) - len(boxes),
            "typed": "\n".join(each for each in choice.entries if each not in known),
            "version": (row.version if row else "") if mine and mine.conflict else choice.version,
            "refused": mine,
        }


def _from_row(row: StoredItems | None) -> ItemChoice:
    return ItemChoice(True, tuple(row.entries), row.version) if row else ItemChoice(False, (), "")


def _from_form(form: QueryDict) -> ItemChoice:
    is_list = form.get("mode") == "list"
    typed = [line.strip() for line in form.get("typed", "").splitlines()]
    entries = dict.fromkeys([*form.getlist("entry"), *filter(None, typed)])
    return ItemChoice(is_list, tuple(entries) if is_list else (), form.get("version", ""))


def _saved(holder: Holder, kind: ItemType, choice: ItemChoice) -> str:
    parts = {"holder": holder.name, "count": len(choice.entries)}
    if kind is ItemType.RESOURCES:
        if not choice.is_list:
            return gettext("Saved for %(holder)s: no list of resources.") % parts
        return gettext("Saved for %(holder)s: resources on the list: %(count)s.") % parts
    if not choice.is_list:
        return gettext("Saved for %(holder)s: no list of prompts.") % parts
    return gettext("Saved for %(holder)s: prompts on the list: %(count)s.") % parts
