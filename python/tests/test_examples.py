"""The scripts of examples/python run as a user runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


def printed_by(script: str, folder: Path) -> str:
    command = [sys.executable, EXAMPLES / script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# random actions earn about -1,200 and 22
@pytest.mark.parametrize(
    ("script", "at_least"), [("train_pendulum.py", -600), ("train_cartpole.py", 50)]
)
def test_training_in_environments_of_others(script: str, at_least: float, tmp_path: Path) -> None:
    printed = printed_by(script, tmp_path)
    returns = [float(value) for value in re.findall(r"return (-?\d+)", printed)]
    assert len(returns) >= 2
    assert max(returns[1:]) > at_least
    assert re.search(r"^finished: runs/", printed, re.MULTILINE)


def test_stable_baselines(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")
    assert "2,000 steps in" in printed_by("stable_baselines.py", tmp_path)
