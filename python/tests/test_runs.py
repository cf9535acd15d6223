from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import msrl_command

import msrl


def test_tables(run_directory: Path) -> None:
    run = msrl.Run(run_directory)
    rows = [json.loads(line) for line in (run_directory / "evals.jsonl").read_text().splitlines()]
    assert run.evals["step"].tolist() == [0, 200, 400] == [row["step"] for row in rows]
    np.testing.assert_array_equal(np.stack(run.evals["returns"]), [row["returns"] for row in rows])
    np.testing.assert_allclose(run.evals["mean_return"], np.stack(run.evals["returns"]).mean(axis=1))
    assert run.metrics["step"].tolist() == [100, 200, 300, 400]
    # losses are there once learning has begun
    learning = [name for name, column in run.metrics.items() if np.isnan(column.astype(float)).any()]
    assert learning != []
    assert run.config["run"]["steps"] == 400
    assert run.config["run"]["agent"] == run_directory.name
    assert run.status["state"] == "finished"
    assert run.facts["format"].startswith("msrl")


def test_frames(run_directory: Path) -> None:
    run = msrl.Run(run_directory)
    frame = run.frame("evals")
    assert frame.index.tolist() == [0, 200, 400]
    assert frame["mean_return"].tolist() == run.evals["mean_return"].tolist()
    assert len(run.frame("metrics")) == 4
    with pytest.raises(msrl.UserError, match="no table 'losses'"):
        run.frame("losses")


def test_growing_and_damaged_runs(run_directory: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run_directory, copy)
    evals = (copy / "evals.jsonl").read_text()
    (copy / "evals.jsonl").write_text(evals[:-5])
    assert msrl.Run(copy).evals["step"].tolist() == [0, 200]
    (copy / "evals.jsonl").write_text("{nonsense\n" + evals)
    with pytest.raises(msrl.UserError, match="line 1"):
        _ = msrl.Run(copy).evals
    (copy / "metrics.jsonl").unlink()
    assert msrl.Run(copy).metrics == {}
    assert msrl.Run(copy).frame("metrics").empty
    with pytest.raises(msrl.UserError, match="no run"):
        msrl.Run(tmp_path)


def test_policy_plays_as_the_command_does(run_directory: Path) -> None:
    run = msrl.Run(run_directory)
    policy, env = run.policy(seed=5), run.make_env()
    observation, info = env.reset(seed=5)
    total, reward, ended = 0.0, None, False
    while not ended:
        action = policy(observation, info["geometry"], reward)
        observation, reward, terminated, truncated, info = env.step(action)
        total, ended = total + float(reward), terminated or truncated
    printed = msrl_command("play", str(run_directory), "--seed", "5")
    played = re.search(r"return +(\S+)", printed)
    assert played is not None
    assert f"{total:.6g}" == played.group(1)


def test_policy_refuses_what_does_not_fit(run_directory: Path) -> None:
    policy = msrl.Run(run_directory).policy()
    observation, geometry = np.zeros(policy.spec.observation_size), np.zeros(8)
    with pytest.raises(msrl.UserError, match="nothing led here"):
        policy(observation, geometry, 1.0)
    policy(observation, geometry)
    with pytest.raises(msrl.UserError, match="observation must have"):
        policy(observation[1:], geometry)
    with pytest.raises(msrl.UserError, match="geometry is not finite"):
        policy(observation, geometry * np.nan, 0.0)
