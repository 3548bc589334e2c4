"""Imports libraries of the web process without optional dependencies that they would load. Sizes: resident memory."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

LEFT_OUT = {
    # Tracebacks for a terminal: 4 MB, where test requirements are installed. Log lines are JSON.
    "structlog": ("greenlet", "rich"),
    # Guesses the encoding of a response that names none: 3 MB. The gateway reads JSON, which is UTF-8: RFC 8259, 8.1.
    "requests": ("charset_normalizer",),
    # Its command line, where test requirements are installed.
    "httpx": ("pygments", "rich"),
    # Formats and columns that the API does not use: 3 MB, and psycopg, 9 MB more, where the database is SQLite.
    "rest_framework.compat": ("django.contrib.postgres", "markdown", "pygments", "yaml"),
}


def load() -> None:
    """At startup only: LEFT_OUT packages are missing for every thread meanwhile."""
    for library, packages in LEFT_OUT.items():
        with missing(*packages), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # requests warns that it cannot guess encodings
            importlib.import_module(library)


@contextmanager
def missing(*packages: str) -> Iterator[None]:
    """Inside the block `packages` that are not loaded yet seem not to be installed."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type] # None: see importlib's "module cache"
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
