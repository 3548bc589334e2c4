"""The catalog files that come with the product."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "vendors"


def shipped_files() -> list[Path]:
    """Return the catalog files that come with the product, by name."""
    return sorted(_FOLDER.glob("*.toml"))
