#!/usr/bin/env python
"""Django's command line."""

import os
import sys


def main() -> None:
    """Run one management command."""
    if sys.argv[1:2] == ["make_env"]:  # makes what settings ask for
        from gateway.container.make_env import main as make_env

        sys.exit(make_env(sys.argv[2:]))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")
    if sys.argv[1:2] == ["doctor"]:
        from gateway.doctor.start import require_settings

        require_settings(sys.argv)
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
