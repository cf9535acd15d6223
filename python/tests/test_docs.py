"""The snippets of README.md and docs/python.md run, one after the other as a reader would type them,
and the package is what its types say. Commands of a shell: tests/docs/run_commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import msrl

SOURCE = Path(__file__).parents[2]


def snippets_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("name", "at_least"), [("docs/python.md", 5), ("README.md", 1)])
def test_snippets_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, at_least: int
) -> None:
    monkeypatch.chdir(tmp_path)
    snippets = snippets_of(SOURCE / name)
    assert len(snippets) >= at_least
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, name, "exec"), names)


def test_pages_with_python_are_run_somewhere() -> None:
    """docs/export.md and docs/datasets.md show what test_export.py and test_datasets.py do."""
    pages = {
        str(page.relative_to(SOURCE))
        for page in [SOURCE / "README.md", *(SOURCE / "docs").glob("*.md")]
        if snippets_of(page)
    }
    assert pages == {"README.md", "docs/python.md", "docs/export.md", "docs/datasets.md"}


def test_everything_public_is_documented() -> None:
    for name in msrl.__all__:
        thing = getattr(msrl, name)
        if callable(thing):
            assert thing.__doc__, name


def test_types() -> None:
    package = Path(msrl.__file__).parent
    assert (package / "py.typed").exists() and (package / "_core.pyi").exists()
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "/dev/null", "-p", "msrl"],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
