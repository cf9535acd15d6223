"""Datasets go from Minari to msrl and back."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from conftest import msrl_command

import msrl

MAP = """
env = "pendulum"
reward_scale = 8
action_low = -2.0
action_high = 2.0

[geometry]
position = [1, 0]
goal = { at = [0, 1] }
motion = { entries = 2, unit = 8 }
posture = 1
"""


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    (tmp_path / "map.toml").write_text(MAP)
    return tmp_path / "datasets"


@pytest.mark.filterwarnings("ignore")
def test_a_dataset_of_minari_becomes_a_library(datasets: Path, tmp_path: Path) -> None:
    collector = minari.DataCollector(gymnasium.make("Pendulum-v1"), data_format="hdf5")
    collector.reset(seed=3)
    for _ in range(2000):
        *_, terminated, truncated, _ = collector.step(collector.action_space.sample())
        if terminated or truncated:
            collector.reset()
    theirs = collector.create_dataset(dataset_id="pendulum/random-v0")
    ours, held_out = tmp_path / "pendulum.h5", tmp_path / "held-out.h5"
    importing = ("dataset", "import", str(datasets / "pendulum/random-v0"), "--map",
                 str(tmp_path / "map.toml"), "--out", str(ours), "--held-out")
    with pytest.raises(subprocess.CalledProcessError):
        msrl_command(*importing, str(tmp_path / "datasets" / ".." / ours.name))
    assert not ours.exists()
    print(msrl_command(*importing, str(held_out)))

    read = [*msrl.read_dataset(ours).episodes, *msrl.read_dataset(held_out).episodes]
    kept = [episode for k, episode in enumerate(theirs) if k % 5 != 1]
    held = [episode for k, episode in enumerate(theirs) if k % 5 == 1]
    assert len(read) == theirs.total_episodes == len(kept) + len(held)
    slots = msrl.SlotMap(tomllib.loads(MAP)["geometry"], observation_size=3)
    for mine, other in zip(read, [*kept, *held], strict=True):
        np.testing.assert_array_equal(mine.observations, other.observations)
        np.testing.assert_allclose(mine.actions, other.actions / 2, atol=1e-6)
        np.testing.assert_array_equal(mine.rewards, other.rewards)
        expected = [slots(row.astype(np.float64)) for row in other.observations]
        np.testing.assert_allclose(mine.geometry, np.clip(expected, -4, 4), atol=1e-6)
        assert mine.truncated

    library = tmp_path / "library.safetensors"
    print(msrl_command("library", "build", "--data", str(ours), "--out", str(library),
                       "--length", "4"))
    assert len(msrl.read_library(library)) > 0
    assert msrl.read_library(library).family == "pendulum"
    assert "pendulum" in msrl_command("describe", str(ours), "--json")
    print(msrl_command("pretrain", "--data", str(ours), "--held-out", str(held_out),
                       "--updates", "20", "--out", str(tmp_path / "branch.safetensors")))
    assert msrl.read_artefact(tmp_path / "branch.safetensors").kind == "value-branch"


def test_flat_lists_as_d4rl_has_them(datasets: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    observations = rng.normal(size=(50, 3)).astype(np.float32)
    ends = np.zeros(50, dtype=bool)
    ends[[19, 49]] = True
    with h5py.File(tmp_path / "flat.hdf5", "w") as file:
        for name, value in {
            "observations": observations,
            "actions": rng.uniform(-2, 2, size=(50, 1)).astype(np.float32),
            "rewards": rng.normal(size=50).astype(np.float32),
            "terminals": np.zeros(50, dtype=bool),
            "timeouts": ends,
        }.items():
            file.create_dataset(name, data=value, compression="gzip")
    msrl_command("dataset", "import", str(tmp_path / "flat.hdf5"), "--map",
                 str(tmp_path / "map.toml"), "--out", str(tmp_path / "flat.h5"))
    first, second = msrl.read_dataset(tmp_path / "flat.h5").episodes
    np.testing.assert_array_equal(first.observations, observations[:20])
    np.testing.assert_array_equal(second.observations, observations[20:])


@pytest.mark.parametrize(("family", "discrete"), [("point-rooms", False), ("graph-motif", True)])
def test_minari_opens_what_was_collected(
    datasets: Path, tmp_path: Path, family: str, discrete: bool
) -> None:
    data = tmp_path / "data.h5"
    msrl_command("collect", "--sources", family, "--episodes", "6", "--targets", "mc",
                 "--out", str(data))
    print(msrl_command("dataset", "export", str(data), "--minari", str(datasets),
                       "--id", f"msrl/{family}-v0"))
    theirs = minari.load_dataset(f"msrl/{family}-v0")
    ours = msrl.read_dataset(data)
    assert theirs.total_episodes == 6
    assert isinstance(theirs.action_space, gymnasium.spaces.Discrete) == discrete
    for mine, other in zip(ours.episodes, theirs, strict=True):
        assert theirs.observation_space.contains(other.observations[0])
        assert theirs.action_space.contains(other.actions[0])
        np.testing.assert_array_equal(mine.observations, other.observations)
        np.testing.assert_array_equal(mine.rewards, other.rewards)
        np.testing.assert_array_equal(mine.geometry, other.infos["geometry"])
        assert mine.terminated == other.terminations[-1]


def exported_replay(
    datasets: Path, tmp_path: Path, env: str, agent: str, steps: int, *settings: str
) -> minari.MinariDataset:
    run = tmp_path / "run"
    chosen = [word for setting in settings for word in ("--set", setting)]
    msrl_command("train", "--env", env, "--agent", agent, "--steps", str(steps), "--seed", "3",
                 "--run", str(run), *chosen)
    print(msrl_command("dataset", "export", str(run), "--minari", str(datasets),
                       "--id", f"msrl/{env}-{agent}-v0"))
    return minari.load_dataset(f"msrl/{env}-{agent}-v0")


SMALL = ("hidden_width=8", "random_steps=50", "batch_size=16")


def test_the_replay_of_a_run_is_a_dataset(datasets: Path, tmp_path: Path) -> None:
    theirs = exported_replay(datasets, tmp_path, "hopper", "sac", 400, *SMALL)
    assert theirs.total_steps == 400
    episodes = list(theirs)
    assert len(episodes) > 5
    for k, episode in enumerate(episodes):
        assert theirs.observation_space.contains(episode.observations[0])
        assert theirs.action_space.contains(episode.actions[0])
        assert not episode.terminations[:-1].any() and not episode.truncations[:-1].any()
        # the robot falls exactly where the episode terminates
        height, angle = episode.observations[:, 0], episode.observations[:, 1]
        fallen = (height < 0.7) | (np.abs(angle) > 0.2)
        assert not fallen[:-1].any()
        assert episode.terminations[-1] == fallen[-1]
        last = k == len(episodes) - 1
        assert episode.truncations[-1] == (last and not fallen[-1])


def test_a_replay_that_has_forgotten_its_beginning(datasets: Path, tmp_path: Path) -> None:
    theirs = exported_replay(datasets, tmp_path, "reacher", "td3", 175, "replay_size=100", *SMALL)
    lengths = [len(episode.rewards) for episode in theirs]
    # episodes have 50 steps: 100 states are the last 22 of the second, the third, and 25 of the fourth
    assert lengths == [50, 25]
    assert [bool(episode.truncations[-1]) for episode in theirs] == [True, True]


def test_replay_with_choices(datasets: Path, tmp_path: Path) -> None:
    theirs = exported_replay(datasets, tmp_path, "graph-motif", "dqn", 200, *SMALL)
    assert isinstance(theirs.action_space, gymnasium.spaces.Discrete)
    assert theirs.total_steps == 200
    for episode in theirs:
        assert theirs.action_space.contains(episode.actions[0])
        assert len(episode.observations) == len(episode.rewards) + 1


def test_agents_without_a_replay_say_so(datasets: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as error:
        exported_replay(datasets, tmp_path, "reacher", "random", 60)
    assert "agent 'random' keeps no replay" in error.value.stderr
