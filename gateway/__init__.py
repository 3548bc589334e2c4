"""The project and its shared kernel: settings, URLs, ASGI entry, and what every app below the domain uses."""

__version__ = "0.1.0"
