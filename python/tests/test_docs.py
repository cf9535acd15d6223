"""The snippets of docs/python.md run, one after the other as a reader would type them, and the
package is what its types say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import msrl

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(snippets) >= 5
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(PAGE), "exec"), names)


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
