"""The error codes that the product can answer, read from its code: refusals, outcomes, OAuth errors, JSON-RPC codes."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import ModuleType

from oauthlib.oauth2 import OAuth2Error

from gateway.lib.errors import DomainError
from gateway.site.errors import TEXTS
from oauth_ext.views.token import DESCRIPTIONS
from proxy.outcomes import CallFault, Denial, VendorFault
from proxy.protocol import jsonrpc
from proxy.protocol.modern import errors as modern_errors
from tests.product import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
# The payment provider's mirror loads only with its app, and platforms of log shipping have members of their own.
SKIPPED = {"migrations", "djstripe_migrations", "commands", "mirror", "platforms"}
# Of each function that makes an answer of a code: the position of the code.
MAKERS = {
    "AuthorizeRedirectError": 3,
    "BadMetadata": 0,
    "CustomOAuth2Error": 0,
    "HttpError": 1,
    "OAuthErrorResponse": 0,
    "Refusal": 1,
    "_ParameterError": 0,
    "_render_error": 2,
    "cls": 1,
    "error_location": 2,
    "oauth_error": 0,
}
# Members of bodies that hold a code.
MEMBERS = {"error", "reason"}
CODE = re.compile(r"[a-z][a-z0-9_]*")


def all_codes() -> set[str]:
    """Codes in words, and those of JSON-RPC as they are written."""
    return words() | {str(number) for number in numbers()}


def numbers() -> set[int]:
    return {
        value
        for module in (jsonrpc, modern_errors)
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, int)
    }


@cache
def words() -> frozenset[str]:
    modules = [importlib.import_module(name) for name in module_names()]
    enums: tuple[type[StrEnum], ...] = (Denial, VendorFault, CallFault)
    return frozenset(
        {code for code, _, _ in TEXTS.values()}
        | {refusal.code for refusal in refusals(DomainError)}
        | {each.value for enum in enums for each in enum}
        | set(DESCRIPTIONS)
        | {code for module in modules for code in codes_of(module)}
    )


def module_names() -> Iterator[str]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not SKIPPED & set(path.parts) and path.name != "__main__.py":
                yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def refusals(base: type[DomainError]) -> Iterator[type[DomainError]]:
    """Those of the product: tests have some of their own."""
    for each in base.__subclasses__():
        if each.__module__.partition(".")[0] in PACKAGES:
            yield each
        yield from refusals(each)


def codes_of(module: ModuleType) -> set[str]:
    """Codes that the module's source gives to MAKERS, has in MEMBERS, or raises as errors of the OAuth library."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            found |= {code for each in given(node) for code in read(module, each)}
        elif isinstance(node, ast.Dict):
            found |= {code for each in members(node) for code in read(module, each)}
        elif isinstance(node, ast.Assign):
            found |= {code for each in assigned(node) for code in read(module, each)}
        elif isinstance(node, ast.Attribute | ast.Name):
            value = value_of(module, node)
            if isinstance(value, type) and issubclass(value, OAuth2Error) and value.error:
                found.add(value.error)
    return found


def given(call: ast.Call) -> Iterator[ast.expr]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in MAKERS and len(call.args) > MAKERS[name]:
        yield call.args[MAKERS[name]]
    yield from (keyword.value for keyword in call.keywords if keyword.arg in {"code", "error"})


def members(node: ast.Dict) -> Iterator[ast.expr]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value in MEMBERS:
            yield value


def assigned(node: ast.Assign) -> Iterator[ast.expr]:
    """The values of variables named for a code, one by one or several at once."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(target.elts, node.value.elts, strict=False)
        else:
            pairs = zip([target], [node.value], strict=True)
        yield from (value for name, value in pairs if isinstance(name, ast.Name) and name.id in {"code", "error"})


def read(module: ModuleType, node: ast.expr) -> Iterator[str]:
    """The codes of an expression; none where a variable holds it, which has it from elsewhere."""
    if isinstance(node, ast.BoolOp | ast.IfExp):
        for each in node.values if isinstance(node, ast.BoolOp) else (node.body, node.orelse):
            yield from read(module, each)
        return
    value = node.value if isinstance(node, ast.Constant) else value_of(module, node)
    if isinstance(value, str) and CODE.fullmatch(value):
        yield str(value)


def value_of(module: ModuleType, node: ast.expr) -> object:
    """The value of a name of the module, or of an attribute of one; None where it is local."""
    if isinstance(node, ast.Name):
        return getattr(module, node.id, None)
    if isinstance(node, ast.Attribute):
        return getattr(value_of(module, node.value), node.attr, None)
    if isinstance(node, ast.Starred):
        values = value_of(module, node.value)
        return values[0] if isinstance(values, tuple) else None
    return None
