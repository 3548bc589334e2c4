"""Static files under hashed names, compressed."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStaticFiles(CompressedManifestStaticFilesStorage):
    # Scripts import each other by hashed names too, so a browser never mixes two releases. Django's own pattern also
    # reads the scripts of packages, whose imports it does not understand.
    patterns = (
        *CompressedManifestStaticFilesStorage.patterns,
        ("js/*.js", ((r'(?P<matched>from "(?P<url>\./\w+\.js)")', 'from "%(url)s"'),)),
    )
