"""The catalog entry of the demonstration vendor."""

from pathlib import Path

from demo.listening import http_origin

CATALOG_FILE = Path(__file__).with_suffix(".toml")
WRITTEN_URL = 'url = "http://127.0.0.1:9100/mcp"'


def render_catalog(vendor_port: int, host: str = "127.0.0.1") -> str:
    """catalog.toml with the vendor's actual address. Raises: ValueError for a bad port or host. Contract: §4"""
    if not 1 <= vendor_port <= 65535:
        raise ValueError(f"{vendor_port} is not a port")
    if not host or not all(letter.isascii() and (letter.isalnum() or letter in ".:-") for letter in host):
        raise ValueError(f"{host!r} is not a host name or an address")
    before, written, after = CATALOG_FILE.read_text(encoding="utf-8").partition(WRITTEN_URL)
    if not written:
        raise ValueError(f"{CATALOG_FILE.name} no longer holds the line {WRITTEN_URL}")
    return f'{before}url = "{http_origin(host, vendor_port)}/mcp"{after}'
