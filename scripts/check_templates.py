"""Compiles every template of the project and follows what it names: parents, fragments, URL names, static files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django  # noqa: E402

django.setup()

from django.contrib.staticfiles import finders  # noqa: E402
from django.template import Engine, TemplateDoesNotExist, TemplateSyntaxError, engines  # noqa: E402
from django.template.base import FilterExpression, Node, Template  # noqa: E402
from django.template.defaulttags import URLNode  # noqa: E402
from django.template.loader_tags import ExtendsNode, IncludeNode  # noqa: E402
from django.templatetags.static import StaticNode  # noqa: E402
from django.urls import URLPattern, URLResolver, get_resolver  # noqa: E402


def template_names() -> list[str]:
    """The name of every template in the project's own folders."""
    folders = [Path(folder) for folder in engines["django"].template_dirs if Path(folder).is_relative_to(ROOT)]
    return sorted(
        str(file.relative_to(folder))
        for folder in folders
        if ".venv" not in folder.parts
        for file in folder.rglob("*")
        if file.is_file()
    )


def url_names(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    """Every URL name with its namespaces."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            namespace = f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix
            yield from url_names(pattern.url_patterns, namespace)
        elif pattern.name:
            yield prefix + pattern.name


def constant(expression: object) -> str | None:
    """The text of an expression that is one, None for a variable."""
    if isinstance(expression, FilterExpression) and isinstance(expression.var, str) and not expression.filters:
        return str(expression.var)
    return None


def faults_of(node: Node, names: set[str]) -> Iterator[str]:
    """The names in a node that do not exist."""
    if isinstance(node, (ExtendsNode, IncludeNode)):
        other = constant(node.parent_name if isinstance(node, ExtendsNode) else node.template)
        if other is not None and not exists(other):
            yield f"there is no template {other}"
    elif isinstance(node, URLNode):
        name = constant(node.view_name)
        if name is not None and name not in names:
            yield f"there is no URL named {name}"
    elif isinstance(node, StaticNode):
        path = constant(node.path)
        if path is not None and finders.find(path) is None:
            yield f"there is no static file {path}"


def exists(name: str) -> bool:
    """Whether a template of that name is found and compiles."""
    try:
        Engine.get_default().get_template(name)
    except (TemplateDoesNotExist, TemplateSyntaxError):
        return False
    return True


def check(name: str, names: set[str]) -> list[str]:
    """The faults of one template."""
    try:
        template: Template = Engine.get_default().get_template(name)
    except TemplateSyntaxError as error:
        return [f"{name}: {error}"]
    nodes = [node for root in template.nodelist for node in root.get_nodes_by_type(Node)]
    return [f"{name}: {fault}" for node in nodes for fault in faults_of(node, names)]


def main() -> int:
    """Check all; a project without templates has lost them."""
    names = set(url_names(get_resolver().url_patterns))
    templates = template_names()
    faults = [fault for template in templates for fault in check(template, names)]
    print(*(faults or [f"{len(templates)} templates compile"]), sep="\n")
    return 1 if faults or not templates else 0


if __name__ == "__main__":
    sys.exit(main())
