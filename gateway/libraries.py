"""Libraries of the web process, loaded before anybody else does, without what they take along where they find it.

A package that is left out here is one that its library can do without, and that nothing of ours uses. Sizes are of
resident memory.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

LEFT_OUT = {
    # Tracebacks for a terminal (4 MB, where tests are installed); our log lines are JSON.
    "structlog": ("greenlet", "rich"),
    # Guesses the encoding of an answer that names none (3 MB). Those we read are JSON, and so UTF-8: RFC 8259, 8.1.
    "requests": ("charset_normalizer",),
    # Formats, colours and columns that our API has not (3 MB; psycopg, 9 MB more, where the database is SQLite).
    "rest_framework.compat": ("django.contrib.postgres", "markdown", "pygments", "yaml"),
}


def load() -> None:
    """Every library of LEFT_OUT is loaded. For a start: what is left out is missing for every thread meanwhile."""
    for library, packages in LEFT_OUT.items():
        with missing(*packages), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # requests says that it cannot guess encodings
            importlib.import_module(library)


@contextmanager
def missing(*packages: str) -> Iterator[None]:
    """Inside the block those of `packages` that are not loaded yet seem not to be installed."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type] # None: see importlib's "module cache"
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
