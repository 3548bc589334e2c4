"""Base of pages with one form: shown, saved, or shown again with the input and the refusal."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.functional import Promise

from billing.errors import SubscriptionRequired
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib.errors import DomainError, NotFound
from gateway.web import form_idempotency
from gateway.web.form_errors import show_on
from gateway.web.org_page import OrgPage
from gateway.web.rate import RateLimited
from gateway.web.signed_in import SignedInPage

FormT = TypeVar("FormT", bound=forms.Form)


class FormPage(SignedInPage, Generic[FormT]):
    """GET shows the form, POST saves it. A subclass says how, and what else the template shows."""

    form_class: type[FormT]
    template: ClassVar[str]
    # The answer to a second submit of one form. Without it the form has no idempotency key.
    already_sent: ClassVar[str | Promise] = ""
    # Status of the page that shows a refusal of `save`. None: the refusal's own.
    refusal_status: ClassVar[int | None] = HTTPStatus.UNPROCESSABLE_ENTITY

    def initial(self) -> dict[str, Any]:
        return {}

    def new_form(self, data: QueryDict | None = None) -> FormT:
        return self.form_class(data, initial=self.initial())

    def save(self, form: FormT) -> HttpResponse:
        """The answer to a valid form. Raises: DomainError, which the page shows on the form."""
        raise NotImplementedError

    def context(self) -> dict[str, Any]:
        """Variables of the template beside the form."""
        return {}

    def sent_again(self) -> str:
        """The address that a second submit of one form leads to."""
        return self.request.path

    def get(self, request: HttpRequest, **path: Any) -> HttpResponse:
        return self.show(self.new_form())

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        form = self.new_form(request.POST)
        if not form.is_valid():
            return self.show(form, status=HTTPStatus.UNPROCESSABLE_ENTITY)
        if self.already_sent and not form_idempotency.claim_key(request):
            messages.info(request, str(self.already_sent))
            return redirect(self.sent_again())
        try:
            return self.save(form)
        except (NotFound, CoordinationUnavailable):
            # The page has no subject any more, or the change may have been made already.
            raise
        except DomainError as refusal:
            show_on(form, refusal)
            return self.show(form, status=self.refusal_status or refusal.status)

    def show(self, form: FormT, *, status: int = 200, **extra: Any) -> HttpResponse:
        key = {"form_key": form_idempotency.new_key(self.request)} if self.already_sent else {}
        return self.page(self.template, {"form": form, **key, **self.context(), **extra}, status=status)


class OrgFormPage(FormPage[FormT], OrgPage):
    """A page below /orgs/<org_id>/ with one form."""

    # Refusals of the POST's gate that the page shows above its form, which keeps the input.
    shown_refusals: ClassVar[tuple[type[DomainError], ...]] = ()

    def refused(self, refusal: RateLimited | SubscriptionRequired) -> HttpResponse:
        if self.request.method != "POST" or not isinstance(refusal, self.shown_refusals):
            return super().refused(refusal)
        typed = {name: self.request.POST.get(name, "") for name in self.form_class.base_fields}
        return self.show(self.form_class(initial=typed), status=refusal.status)
