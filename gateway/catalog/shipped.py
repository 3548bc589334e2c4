"""The catalog files shipped with the product."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "vendors"


def shipped_files() -> list[Path]:
    return sorted(_FOLDER.glob("*.toml"))
