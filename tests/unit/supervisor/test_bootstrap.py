"""The Python that a start takes, and the one line for a machine that has none; how an environment is judged."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests import embedded, long_ones

ROOT = Path(__file__).resolve().parents[3]
BOOTSTRAP = ROOT / "scripts" / "bootstrap.py"
NEWER_SYNTAX = (
    ast.JoinedStr,
    ast.AnnAssign,
    ast.NamedExpr,
    ast.Nonlocal,
    ast.AsyncFunctionDef,
    ast.YieldFrom,
    ast.Match,
)


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"scripts_{name}", ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def fake_python(folder: Path, name: str, answer: str) -> Path:
    """A program that answers the probe like some machine's Python and tells how it was called otherwise."""
    program = folder / name
    program.write_text(f'#!/bin/sh\n[ "$1" = -c ] && {{ echo "{answer}"; exit 0; }}\necho "ran {name} $*"\n')
    program.chmod(0o755)
    return program


def start(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(folder), "VENV": str(folder / "no-venv"), **variables}
    program = "import sys, runpy; sys.executable = ''; sys.argv = ['bootstrap.py', 'run', '-m', 'x']; "
    command = [sys.executable, "-S", "-c", program + f"runpy.run_path({str(BOOTSTRAP)!r}, run_name='__main__')"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_the_file_keeps_to_what_an_old_python_parses() -> None:
    tree = ast.parse(BOOTSTRAP.read_text())
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, NEWER_SYNTAX)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert functions
    for function in functions:
        arguments = function.args
        assert function.returns is None
        assert not arguments.kwonlyargs
        assert not arguments.posonlyargs
        assert not [argument for argument in arguments.args if argument.annotation]


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        ({"python3": "3.11.2 venv"}, "python3"),
        ({"python3": "3.9.2 venv", "python3.12": "3.12.4 venv"}, "python3.12"),
        ({"python3": "3.11.2 bare", "python3.13": "3.13.0 venv"}, "python3.13"),
        ({"python": "3.11.9 venv"}, "python"),
    ],
)
def test_the_first_python_that_will_do_is_taken(tmp_path: Path, pythons: dict[str, str], chosen: str) -> None:
    for name, answer in pythons.items():
        fake_python(tmp_path, name, answer)
    result = start(tmp_path)
    assert result.stdout == f"ran {chosen} {ROOT}/scripts/environment.py run -m x\n"


@pytest.mark.parametrize(
    ("pythons", "line"),
    [
        ({}, "Python 3.11 or newer is needed; none was found. "),
        ({"python3": "3.9.2 venv"}, "Python 3.11 or newer is needed; this is 3.9.2. "),
        ({"python3": "2.7.18 bare"}, "Python 3.11 or newer is needed; this is 2.7.18. "),
        ({"python3": "3.11.2 bare"}, "Python 3.11.2 has no venv module. Install it (Debian, Ubuntu: apt-get install "),
        ({"python3": "not a version"}, "Python 3.11 or newer is needed; none was found. "),
    ],
)
def test_a_machine_without_one_gets_one_line(tmp_path: Path, pythons: dict[str, str], line: str) -> None:
    for name, answer in pythons.items():
        fake_python(tmp_path, name, answer)
    result = start(tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1
    assert "make PYTHON=/path/to" in result.stderr


def test_a_named_python_is_the_only_one_asked(tmp_path: Path) -> None:
    fake_python(tmp_path, "python3", "3.11.2 venv")
    named = fake_python(tmp_path, "mine", "3.8.1 venv")
    assert "this is 3.8.1" in start(tmp_path, PYTHON=str(named)).stderr
    assert f"{tmp_path}/gone does not start" in start(tmp_path, PYTHON=f"{tmp_path}/gone").stderr


def test_a_stamp_counts_only_for_its_lock_and_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = script("environment")
    monkeypatch.setattr(environment, "venv_version", lambda venv: "3.11")
    monkeypatch.delenv("PYTHON", raising=False)

    def stamp(python: str, **locks: str) -> None:
        (tmp_path / environment.STAMP_NAME).write_text(json.dumps({"python": python, "locks": locks}))

    assert not environment.is_satisfied(tmp_path, "run")
    stamp("3.11", run=environment.lock_sha256("run"))
    assert environment.is_satisfied(tmp_path, "run")
    assert not environment.is_satisfied(tmp_path, "dev")
    stamp("3.11", run=environment.lock_sha256("run"), dev=environment.lock_sha256("dev"))
    assert environment.is_satisfied(tmp_path, "dev")
    stamp("3.12", run=environment.lock_sha256("run"))
    assert not environment.is_satisfied(tmp_path, "run")
    stamp("3.11", run="0" * 64)
    assert not environment.is_satisfied(tmp_path, "run")
    (tmp_path / environment.STAMP_NAME).write_text("[]")
    assert not environment.is_satisfied(tmp_path, "run")


def test_the_larger_lock_covers_the_smaller() -> None:
    environment = script("environment")
    assert environment.covered_levels("run") == ["run"]
    assert environment.covered_levels("dev") == ["run", "dev"]
    pins = {name: set(environment.LOCKS[name].read_text().splitlines()) for name in ("run", "dev")}
    assert {line for line in pins["run"] if "==" in line} <= pins["dev"]


def test_an_interpreter_that_is_gone_is_noticed(tmp_path: Path) -> None:
    environment = script("environment")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/no/such/python3.11")
    assert environment.venv_version(tmp_path) is None


def test_a_folder_with_other_files_is_never_cleared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = script("environment")
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit):
        environment.prepare_folder(tmp_path)
    assert "holds other files" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").exists()


def test_a_failed_install_keeps_the_stamp_and_a_killed_one_does_not(tmp_path: Path) -> None:
    environment = script("environment")
    stamp = tmp_path / environment.STAMP_NAME
    stamp.write_text("old")
    with pytest.raises(SystemExit), environment.stamp_set_aside(tmp_path):
        raise SystemExit(2)
    assert stamp.read_text() == "old"
    with pytest.raises(KeyboardInterrupt), environment.stamp_set_aside(tmp_path):
        raise KeyboardInterrupt
    assert not stamp.exists()
    assert (tmp_path / environment.UNFINISHED_NAME).exists()


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Collecting a\nERROR: first\nERROR: No matching distribution\n\n", "ERROR: No matching distribution"),
        ("something\nelse\n", "else"),
        ("", "it said nothing"),
    ],
)
def test_a_failure_is_reported_by_its_most_telling_line(output: str, line: str) -> None:
    assert script("environment").last_error(output) == line


@pytest.mark.parametrize(
    ("environ", "titles"),
    [
        ({}, ["SQLite and the in-process store"]),
        (
            {"TEST_DATABASE_URL": "postgres://h/d", "TEST_REDIS_URL": "redis://h/1"},
            ["SQLite and the in-process store", "PostgreSQL and Redis"],
        ),
        ({"TEST_REDIS_URL": "redis://h/1"}, ["SQLite and the in-process store", "SQLite and Redis"]),
    ],
)
def test_the_suite_runs_on_what_is_named(environ: dict[str, str], titles: list[str]) -> None:
    assert [entry.title for entry in script("test").back_ends(environ)] == titles


def test_every_test_runs_on_productions_back_ends_or_once_on_the_embedded_ones() -> None:
    both = {"TEST_DATABASE_URL": "postgres://a/b", "TEST_REDIS_URL": "redis://a"}
    marks = [entry.marks for entry in script("test").back_ends(both)]
    assert marks == ["one_back_end or embedded", "not one_back_end"]


@pytest.mark.parametrize("environ", [{}, {"TEST_DATABASE_URL": "postgres://a/b"}, {"TEST_REDIS_URL": "redis://a"}])
def test_without_productions_pair_the_embedded_back_ends_run_everything(environ: dict[str, str]) -> None:
    assert script("test").back_ends(environ)[0].marks == ""


def test_every_path_of_the_embedded_tests_exists() -> None:
    places = [*embedded.PLACES, *embedded.LONG_PLACES]
    assert [place for place in places if not (embedded.TESTS / place).exists()] == []


@pytest.mark.parametrize(
    ("path", "database", "mark"),
    [
        ("faults/test_followed_stream.py", "sqlite", "one_back_end"),
        ("faults/test_followed_stream.py", "postgresql", "embedded"),
        ("faults/test_gateway_durability.py", None, "embedded"),
        ("faults/test_bodies.py", None, None),
        ("api/audit/test_log_api.py", "sqlite", "embedded"),
        ("api/orgs/test_teams.py", None, None),
    ],
)
def test_a_fault_test_on_a_file_runs_with_the_embedded_back_ends_alone(
    path: str, database: str | None, mark: str | None
) -> None:
    marks: list[str] = []
    item = SimpleNamespace(
        path=embedded.TESTS / path, fixturenames=(), add_marker=lambda added: marks.append(added.name)
    )
    if database is not None:
        item.callspec = SimpleNamespace(params={"database": database})
    embedded.mark([item])  # type: ignore[list-item]
    assert marks == ([mark] if mark else [])


@pytest.mark.parametrize("line", ["--index-url https://pypi.example/simple", "a @ https://x/a.whl", "-r other.txt", ""])
def test_a_lock_file_may_not_name_an_address(line: str) -> None:
    lint = script("lint")
    good = f"a==1.0 \\\n    --hash=sha256:{'0' * 64}\n"
    assert lint.lock_faults("x.lock", good) == []
    assert len(lint.lock_faults("x.lock", f"{good}{line}\n")) == 1


def test_long_tests_are_left_out_unless_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_LONG", raising=False)
    assert script("test").marks("a or b") == ["-m", "(a or b) and not long"]
    assert script("test").marks("") == ["-m", "not long"]
    monkeypatch.setenv("TEST_LONG", "1")
    assert script("test").marks("a or b") == ["-m", "(a or b)"]
    assert script("test").marks("") == []


def test_every_long_test_is_there() -> None:
    """A name that no test has any more would leave nothing out."""
    for place, names in long_ones.FILES.items():
        text = (long_ones.TESTS / place).read_text()
        assert all(f"def {name}(" in text for name in names), place
    for place, name in long_ones.VARIANTS:
        assert f"def {name}(" in (long_ones.TESTS / place).read_text(), place


def test_of_many_variants_each_nth_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(long_ones.VARIANTS, ("api/orgs/test_teams.py", "test_some"), 3)
    marked: list[int] = []
    items = [
        SimpleNamespace(
            path=long_ones.TESTS / "api/orgs/test_teams.py",
            name=f"test_some[{number}]",
            originalname="test_some",
            add_marker=lambda _, number=number: marked.append(number),
        )
        for number in range(7)
    ]
    long_ones.mark(items)  # type: ignore[arg-type]
    assert marked == [1, 2, 4, 5]
