"""Deployments in real containers, as docs/install.md describes them; programs, and no part of the suite."""
