"""Run directories as NumPy sees them, and trained agents as functions."""

from __future__ import annotations

import json
import os
import tomllib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from msrl import _core
from msrl._arrays import as_numbers
from msrl._core import EnvSpec, UserError
from msrl.envs import MsrlEnv
from msrl.targets import EnvLike, Geometry, recorded_target

if TYPE_CHECKING:
    import pandas

__all__ = ["Policy", "Run"]

Columns = dict[str, NDArray[Any]]


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that may be growing: a last line without its end is left out."""
    rows = []
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if not line.endswith("\n"):
            break
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise UserError(f"{path} is damaged: line {number}: {error}") from None
    return rows


def _column(values: list[Any]) -> NDArray[Any]:
    present = [value for value in values if value is not None]
    if any(isinstance(value, list) for value in present):
        column = np.empty(len(values), dtype=object)
        for i, value in enumerate(values):
            column[i] = None if value is None else np.asarray(value)
        return column
    if any(isinstance(value, str) for value in present):
        return np.array(values, dtype=object)
    if len(present) == len(values) and all(isinstance(value, int) for value in values):
        return np.array(values, dtype=np.int64)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _columns(rows: list[dict[str, Any]]) -> Columns:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}


class Run:
    """A run's directory (docs/running.md), read when asked; it may be growing meanwhile."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not (self.path / "run.json").is_file():
            raise UserError(f"there is no run in {self.path}: no run.json")

    @property
    def facts(self) -> dict[str, Any]:
        """run.json: what the run is, with versions."""
        return self._json("run.json")

    @property
    def config(self) -> dict[str, Any]:
        """config.toml: every setting in the sections `run`, `env` and `agent`."""
        path = self.path / "config.toml"
        try:
            return tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise UserError(f"{path} cannot be read: {error}") from None

    @property
    def status(self) -> dict[str, Any]:
        """status.json: how far it is."""
        return self._json("status.json")

    @property
    def evals(self) -> Columns:
        """A column per figure of evals.jsonl, a row per evaluation.

        `returns` and `lengths` hold an array per row, an entry per episode.
        """
        return _columns(_read_lines(self.path / "evals.jsonl"))

    @property
    def metrics(self) -> Columns:
        """A column per metric of metrics.jsonl; NaN where a row has none."""
        return _columns(_read_lines(self.path / "metrics.jsonl"))

    def frame(self, name: str) -> pandas.DataFrame:
        """`evals` or `metrics` as a pandas DataFrame, indexed by `step`."""
        if name not in ("evals", "metrics"):
            raise UserError(f"there is no table {name!r}, only 'evals' and 'metrics'")
        import pandas

        columns: Columns = getattr(self, name)
        return pandas.DataFrame(columns).set_index("step") if columns else pandas.DataFrame()

    def policy(self, seed: int = 0) -> Policy:
        """The agent of the newest checkpoint; `seed` is that of its noise, if it has any."""
        return Policy(self.path, seed)

    def export(
        self,
        onnx: str | os.PathLike[str] | None = None,
        header: str | os.PathLike[str] | None = None,
        name: str = "policy",
        force: bool = False,
    ) -> None:
        """Writes the policy of the newest checkpoint for other programs, as `msrl export` does.

        `onnx` is a model of ONNX, `header` C99 in one file whose functions are called after `name`.
        UserError with the reason if the policy is no function of the observation alone, or if a file
        is there already, unless `force`.
        """
        for text in _core.export_policy(
            os.fspath(self.path),
            "" if onnx is None else os.fspath(onnx),
            "" if header is None else os.fspath(header),
            name,
            force,
        ):
            warnings.warn(text, stacklevel=2)

    def make_env(
        self,
        render_mode: str | None = None,
        env: EnvLike | None = None,
        geometry: Geometry | None = None,
    ) -> gymnasium.Env[Any, Any]:
        """The environment of the run, with its options, as its agent sees it.

        `env` and `geometry` as in `msrl.resume`, where the records do not suffice.
        """
        facts = self.facts["env"]
        target = recorded_target(
            facts, env, geometry, {} if render_mode is None else {"render_mode": render_mode}
        )
        if target is not None:
            return target.take()
        return MsrlEnv(facts["id"], render_mode=render_mode, **facts["settings"])

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            contents: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            raise UserError(f"{path} cannot be read: {error}") from None
        return contents


class Policy:
    """A trained agent: `policy(observation, geometry, reward)` is its action.

    Agents act on the matrix of the episode so far besides the observation, so the policy follows
    the episode: `geometry` is `info["geometry"]`, `reward` that of the step that led here, None at
    the beginning of an episode. It assumes that its own actions are the ones that are played.
    """

    def __init__(self, path: str | os.PathLike[str], seed: int = 0) -> None:
        self._native = _core.Policy(os.fspath(path), seed)
        self.spec: EnvSpec = self._native.spec
        for text in self._native.warnings:
            warnings.warn(text, stacklevel=2)

    def __call__(
        self, observation: ArrayLike, geometry: ArrayLike, reward: float | None = None
    ) -> int | NDArray[np.float64]:
        return self._native.act(
            as_numbers("observation", observation, 1),
            as_numbers("geometry", geometry, 1),
            None if reward is None else float(reward),
        )
