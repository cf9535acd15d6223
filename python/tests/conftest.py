from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

Segment = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

COMMAND = shutil.which("msrl") or "msrl"

# A shell starts its background commands with an ignored Ctrl-C, and Python then leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)


def random_segment(rng: np.random.Generator, steps: int, d: int = 3, q: int = 2) -> Segment:
    return rng.normal(size=(steps + 1, d)), rng.normal(size=(steps, q)), rng.normal(size=steps)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def msrl_command(*arguments: str) -> str:
    """What the installed command prints."""
    return subprocess.run(
        [COMMAND, *arguments], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="session", params=["sac", "msrl"])
def run_directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run whose agent has learned something, by the installed command."""
    path = tmp_path_factory.mktemp("runs") / request.param
    settings = ["random_steps=200", "batch_size=32", "hidden_width=32"]
    msrl_command(
        *("train", "--env", "reacher", "--agent", request.param, "--steps", "400", "--run", str(path)),
        *(word for setting in settings for word in ("--set", setting)),
        *("--eval-every", "200", "--eval-episodes", "3", "--log-every", "100"),
    )
    return path
