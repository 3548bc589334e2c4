"""dj-stripe as it is installed: a part of it, and nothing that acts by itself."""

from __future__ import annotations

import sys
from io import StringIO

import pytest
from django.apps import apps
from django.conf import settings
from django.core.checks import registry
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from billing.mirror.library import MODELS
from gateway.settings import workers
from tests.contracts.url_walk import addresses


def test_the_suite_runs_in_the_mode() -> None:
    assert settings.BILLING_MODE == "stripe"


def test_the_models_are_a_part_of_the_librarys() -> None:
    assert {model._meta.model_name for model in apps.get_app_config("djstripe").get_models()} == MODELS


@pytest.mark.django_db
def test_each_model_has_its_table_and_there_is_no_other() -> None:
    models = apps.get_app_config("djstripe").get_models(include_auto_created=True)
    tables = {table for table in connection.introspection.table_names() if table.startswith("djstripe_")}
    assert tables == {model._meta.db_table for model in models}
    assert len(tables) < 20


def test_one_migration_makes_all_of_them() -> None:
    loader = MigrationLoader(None)
    assert [name for app, name in loader.disk_migrations if app == "djstripe"] == ["0001_initial"]
    assert loader.disk_migrations["djstripe", "0001_initial"].__module__.startswith("billing.djstripe_migrations.")


@pytest.mark.django_db
def test_models_and_migrations_agree() -> None:
    call_command("makemigrations", check_changes=True, dry_run=True, stdout=StringIO())


def test_no_check_of_the_library_runs_at_a_start() -> None:
    # They read tables, and one of them asks for a table that is not there.
    assert [each.__module__ for each in registry.registry.registered_checks if "djstripe" in each.__module__] == []


def test_no_handler_no_view_and_no_form_of_the_library_is_loaded() -> None:
    loaded = {name for name in sys.modules if name.startswith("djstripe.")}
    assert not loaded & {"djstripe.event_handlers", "djstripe.views", "djstripe.urls", "djstripe.admin.forms"}
    found = list(addresses())
    assert [each.route for each in found if each.callback.__module__.startswith("djstripe")] == []
    pages = {each.route.split("/")[2] for each in found if each.route.startswith("admin/djstripe/")}
    assert pages == {"customer", "event", "subscription"}


def test_the_mirror_is_scheduled_beside_the_slow_tasks() -> None:
    scheduled = {entry["task"] for entry in workers.CELERY_BEAT_SCHEDULE.values()}
    assert scheduled >= {"billing.mirror", "billing.mirror_customers"}
    assert workers.CELERY_TASK_ROUTES["billing.mirror"] == workers.CELERY_TASK_ROUTES["audit.ship_logs"]
