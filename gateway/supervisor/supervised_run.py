"""The programs of one run: started in order, watched, restarted, stopped in reverse order."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from gateway.supervisor.folder import last_lines, rotated_log, write_private
from gateway.supervisor.line_reader import LineReader
from gateway.supervisor.notes import start_notes
from gateway.supervisor.options import Options, is_given
from gateway.supervisor.processes import Child, Guarded, Service
from gateway.supervisor.readiness import is_ready
from gateway.supervisor.ready_block import ready_facts, terminal_block
from gateway.supervisor.restarts import Restarts
from gateway.supervisor.secret_store import load_secrets
from gateway.supervisor.services import demo_services, gateway_services, preparation_service
from gateway.supervisor.signals import Signals
from gateway.supervisor.terminal import Terminal

READY_NAME = "ready.json"
SEED_NAME = ".demo-seed.json"
# Seconds from the start of the last program until all are ready.
READY_DEADLINE_S = 90.0
POLL_S = 0.1
IDLE_WAIT_S = 60.0
# Log lines shown of a program that ended.
LOG_TAIL_LINES = 12
TITLES = {
    "vendor": "Demo vendor",
    "identity": "Demo sign-in",
    "metrics": "Metrics",
    "web": "Web server",
    "worker": "Worker",
    "shipping": "Log shipping",
}


class Stopped(Exception):
    """A stop signal arrived during a wait."""


class RunFailed(Exception):
    """The run cannot continue. `lines` are the last log lines of the program that ended."""

    def __init__(self, sentence: str, lines: list[str] | None = None) -> None:
        super().__init__(sentence)
        self.lines = lines or []


class SupervisedRun:
    def __init__(
        self, options: Options, environ: Mapping[str, str], terminal: Terminal, signals: Signals, guarded: Guarded
    ) -> None:
        self._options = options
        self._environ = environ
        self._terminal = terminal
        self._signals = signals
        self._guarded = guarded
        self._children: list[Child] = []
        self._preparation: Child | None = None
        self._due: list[tuple[float, Service]] = []
        self._restarts = Restarts()
        self._is_announced = False

    def start(self, started_at_s: float) -> None:
        # Raises: StartRefused, RunFailed, Stopped.
        options = self._options
        self._terminal.title(f"MCP gateway at {options.base_url}")
        for note in start_notes(options, self._environ):
            self._terminal.note(f"  {note}")
        has_database = (options.var / "gateway.sqlite3").exists()
        secrets = load_secrets(options.var, self._environ, has_database=has_database)
        client_secret = self._environ.get("OIDC_RP_CLIENT_SECRET") or secrets.get("OIDC_RP_CLIENT_SECRET", "")
        for service in demo_services(options, self._environ, client_secret):
            self._launch(service)
        seed = self._prepare(secrets)
        for service in gateway_services(options, self._environ, secrets):
            if service.ready_file is not None:
                service.ready_file.unlink(missing_ok=True)
            self._launch(service)
        self._wait_until_ready()
        self._announce(seed, time.monotonic() - started_at_s)

    def watch(self) -> None:
        """Restart programs as they end. Never returns; raises: RunFailed, Stopped."""
        while True:
            self._check_children()
            now = time.monotonic()
            for due_at_s, service in list(self._due):
                if due_at_s <= now:
                    self._due.remove((due_at_s, service))
                    self._launch(service, is_first=False)
            self._wait(min((due_at_s for due_at_s, _ in self._due), default=now + IDLE_WAIT_S) - now)

    def stop(self) -> None:
        """Stop all programs, the last started first."""
        if self._preparation is not None:
            self._guarded.stop(self._preparation, self._signals)
        for child in reversed(self._children):
            self._guarded.stop(child, self._signals)
        self._children.clear()

    def _launch(self, service: Service, *, is_first: bool = True) -> None:
        path = self._options.var / "logs" / f"{service.name}.log"
        if is_first:
            path = rotated_log(self._options.var, service.name)
        self._children.append(self._guarded.start(service, path))

    def _wait(self, timeout_s: float, *files: IO[bytes]) -> None:
        self._signals.wait(timeout_s, *files)
        if self._signals.is_stopping:
            raise Stopped

    def _check_children(self) -> None:
        for child in [child for child in self._children if child.exit_code() is not None]:
            self._children.remove(child)
            self._guarded.forget(child)
            self._replace(child)

    def _replace(self, child: Child) -> None:
        name = child.service.name
        ended = f"{TITLES[name]} stopped (exit code {child.exit_code()})"
        # Until ready.json is written, the end of any program fails the run.
        delay_s = None
        if self._is_announced and child.service.may_restart:
            delay_s = self._restarts.next_delay_s(name, ran_s=time.monotonic() - child.started_at_s)
        if delay_s is None:
            raise RunFailed(
                f"{ended}, so everything stops. The end of {child.log_path}:",
                last_lines(child.log_path, LOG_TAIL_LINES),
            )
        self._terminal.note(f"{ended}; starting it again in {delay_s:.0f} s. Its log: {child.log_path}")
        self._due.append((time.monotonic() + delay_s, child.service))

    def _prepare(self, secrets: Mapping[str, str]) -> dict[str, object]:
        """Run the preparation and show its steps; returns the demo seeding's output."""
        seed_file = self._options.var / SEED_NAME
        seed_file.unlink(missing_ok=True)
        service = preparation_service(
            self._options, self._environ, secrets, catalogs=self._catalog_files(), seed_file=seed_file
        )
        child = self._guarded.start(service, rotated_log(self._options.var, service.name), reads_output=True)
        self._preparation = child
        self._follow_preparation(child)
        self._guarded.forget(child)
        self._preparation = None
        if not self._options.demo:
            return {}
        seed: dict[str, object] = json.loads(seed_file.read_text(encoding="utf-8"))
        seed_file.unlink()
        return seed

    def _follow_preparation(self, child: Child) -> None:
        if child.process.stdout is None:
            raise RuntimeError("the preparation's output was not asked for")
        reader = LineReader(child.process.stdout)
        while (lines := reader.read()) is not None:
            for line in lines:
                self._show_step(json.loads(line), child.log_path)
            self._check_children()
            self._wait(IDLE_WAIT_S, reader.file)
        if child.process.wait() != 0:
            raise RunFailed(
                f"The preparation stopped (exit code {child.exit_code()}). The end of {child.log_path}:",
                last_lines(child.log_path, LOG_TAIL_LINES),
            )

    def _show_step(self, step: Mapping[str, object], log_path: Path) -> None:
        if "error" in step:
            raise RunFailed(str(step["error"]) + (f" (all of it: {log_path})" if step.get("see_log") else ""))
        self._terminal.step(str(step["step"]), str(step["detail"]), float(str(step["seconds"])))

    def _catalog_files(self) -> list[Path]:
        files = []
        if self._options.demo:
            # Imported here: a deployment does not contain the demo's packages.
            from demo.catalog import render_catalog

            demo_file = self._options.var / "demo-catalog.toml"
            write_private(demo_file, render_catalog(self._options.vendor_port, self._options.connect_host))
            files.append(demo_file)
        return files + ([self._options.catalog] if self._options.catalog else [])

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_DEADLINE_S
        waiting = list(self._children)
        while waiting:
            self._check_children()
            for child in [child for child in waiting if is_ready(child.service)]:
                waiting.remove(child)
                self._terminal.step(TITLES[child.service.name], "serving", time.monotonic() - child.started_at_s)
            if waiting and time.monotonic() > deadline:
                slow = waiting[0]
                raise RunFailed(
                    f"{TITLES[slow.service.name]} did not answer within {READY_DEADLINE_S:.0f} s. "
                    f"The end of {slow.log_path}:",
                    last_lines(slow.log_path, LOG_TAIL_LINES),
                )
            if waiting:
                self._wait(POLL_S)

    def _announce(self, seed: Mapping[str, object], elapsed_s: float) -> None:
        options = self._options
        idp_url = options.idp_url if options.runs_demo_provider else None
        if options.demo and not options.runs_demo_provider:
            idp_url = self._environ.get("OIDC_OP_DISCOVERY_URL", "").partition("/.well-known/")[0] or None
        ready = ready_facts(
            base_url=options.base_url,
            idp_url=idp_url,
            vendor_url=options.vendor_url if options.demo else None,
            seed=seed,
        )
        write_private(options.var / READY_NAME, ready.as_json())
        self._is_announced = True
        has_sign_in = options.runs_demo_provider or is_given(self._environ, "OIDC_OP_DISCOVERY_URL")
        for line in terminal_block(ready, folder=str(options.var), elapsed_s=elapsed_s, has_sign_in=has_sign_in):
            self._terminal.line(line)
