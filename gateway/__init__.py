"""The project and its shared kernel: settings, URLs, ASGI entry, and modules that every app uses."""

__version__ = "0.1.0"
