"""What other programs compute from an exported policy is what its agent does."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import gymnasium
import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import msrl_command
from numpy.typing import NDArray

import msrl

OBSERVATIONS = 100_000
MOST_APART = 1e-5

Floats = NDArray[np.float32]


def train(path: Path, agent: str, env: str, *settings: str) -> msrl.Run:
    msrl_command(
        *("train", "--env", env, "--agent", agent, "--steps", "300", "--run", str(path)),
        *("--eval-episodes", "1", "--eval-every", "300"),
        *(word for setting in settings for word in ("--set", setting)),
    )
    return msrl.Run(path)


def draw_observations(run: msrl.Run) -> Floats:
    size = run.policy().spec.observation_size
    return np.random.default_rng(1).normal(size=(OBSERVATIONS, size)).astype(np.float32)


def native(run: msrl.Run, observations: Floats) -> NDArray[np.float64]:
    policy, geometry = run.policy(), np.zeros(8)
    rows = [policy(row, geometry) for row in observations.astype(np.float64)]
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1)


def by_onnxruntime(path: Path, observations: Floats) -> dict[str, NDArray[np.float64]]:
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    values = session.run(None, {"observation": observations})
    return {
        name: np.asarray(value, dtype=np.float64).reshape(len(observations), -1)
        for name, value in zip(names, values, strict=True)
    }


def by_compiler(header: Path, observations: Floats) -> dict[str, NDArray[np.float64]]:
    source = header.with_suffix(".c")
    source.write_text(
        f'#include "{header.name}"\n'
        "void act(int n, const float* o, float* a, float* y) {\n"
        "  for (int i = 0; i < n; ++i) {\n"
        "    policy(o + i * POLICY_OBSERVATION_SIZE, a + i * POLICY_ACTION_SIZE);\n"
        "    policy_outputs(o + i * POLICY_OBSERVATION_SIZE, y + i * POLICY_OUTPUT_SIZE);\n"
        "  }\n"
        "}\n"
    )
    library = header.with_suffix(".so")
    subprocess.run(
        f"cc -std=c99 -Wall -Werror -O2 -shared -fPIC -o {library} {source} -lm".split(), check=True
    )
    size = {
        key: int(number)
        for key, number in re.findall(r"#define POLICY_(\w+)_SIZE (\d+)", header.read_text())
    }
    actions = np.empty((len(observations), size["ACTION"]), dtype=np.float32)
    outputs = np.empty((len(observations), size["OUTPUT"]), dtype=np.float32)
    pointer = ctypes.POINTER(ctypes.c_float)
    ctypes.CDLL(str(library)).act(
        len(observations), *(x.ctypes.data_as(pointer) for x in (observations, actions, outputs))
    )
    return {"action": actions.astype(np.float64), "outputs": outputs.astype(np.float64)}


SMALL = ("hidden_width=32", "batch_size=32", "random_steps=200")


@pytest.mark.parametrize(
    ("agent", "env", "settings"),
    [
        ("sac", "reacher", ("random_steps=200", "batch_size=32")),
        ("msrl", "hopper", (*SMALL, "plan=library")),
        ("ppo", "hopper", ("rollout_steps=128",)),
        ("dqn", "graph-motif", (*SMALL, "critic_layer_norm=true")),
        ("tdmpc", "reacher", ("plan=false", "random_steps=280", "first_updates=5", "model_width=32")),
    ],
)
def test_exported_policies_are_the_agents(
    tmp_path: Path, agent: str, env: str, settings: tuple[str, ...]
) -> None:
    run = train(tmp_path / "run", agent, env, *settings)
    print(msrl_command("export", str(run.path), "--onnx", str(tmp_path / "policy.onnx"),
                       "--header", str(tmp_path / "policy.h")))
    observations = draw_observations(run)
    own = native(run, observations)
    assert np.unique(own[:100], axis=0).shape[0] > 1
    for name, other in (
        ("onnxruntime", by_onnxruntime(tmp_path / "policy.onnx", observations)),
        ("header", by_compiler(tmp_path / "policy.h", observations)),
    ):
        apart = np.abs(other["action"] - own)
        if run.policy().spec.discrete:
            # another action only where both are worth the same
            rows = np.flatnonzero(apart[:, 0])
            assert len(rows) <= OBSERVATIONS / 1000
            of = lambda action: other["outputs"][rows, action[rows, 0].astype(int)]  # noqa: E731
            apart = of(other["action"]) - of(own)
        worst = float(apart.max(initial=0.0))
        print(f"{agent} in {env}: {name} and the agent are at most {worst:.1e} apart")
        assert worst <= MOST_APART


def test_reasons_and_files(run_directory: Path, tmp_path: Path) -> None:
    run = msrl.Run(run_directory)
    run.export(header=tmp_path / "mine.h", name="mine")
    assert "void mine(const float* observation, float* action)" in (tmp_path / "mine.h").read_text()
    with pytest.raises(msrl.UserError, match="--force|exists|there"):
        run.export(header=tmp_path / "mine.h")
    run.export(header=tmp_path / "mine.h", force=True)
    with pytest.raises(msrl.UserError, match="nothing to write"):
        run.export()
    recurrent = train(tmp_path / "run", "dreamer", "graph-motif", "random_steps=299",
                      "deter=16", "blocks=2", "hidden=12", "units=16")
    with pytest.raises(msrl.UserError, match="'dreamer' cannot be exported: .*recurrent"):
        recurrent.export(onnx=tmp_path / "none.onnx")
    assert not (tmp_path / "none.onnx").exists()


def test_targets_of_others(tmp_path: Path) -> None:
    run = msrl.train("Pendulum-v1", agent="sac", steps=220, out=tmp_path / "run",
                     settings={"random_steps": 200, "hidden_width": 32}, eval_episodes=1)
    run.export(onnx=tmp_path / "pendulum.onnx")
    env = run.make_env()
    observation, info = env.reset(seed=1)
    action = by_onnxruntime(tmp_path / "pendulum.onnx", np.float32(observation)[None])["action"]
    np.testing.assert_allclose(
        action[0], run.policy()(observation, info["geometry"]), atol=MOST_APART
    )
    assert isinstance(env, gymnasium.Env)
