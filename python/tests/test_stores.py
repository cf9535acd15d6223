from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import msrl_command

import msrl


def collect(path: Path, episodes: int, split: str = "train") -> Path:
    msrl_command(
        *("collect", "--sources", "point-rooms", "--episodes", str(episodes), "--targets", "mc"),
        *("--split", split, "--out", str(path)),
    )
    return path


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return collect(tmp_path_factory.mktemp("data") / "data.h5", 12)


def line(steps: int, **others: Any) -> msrl.Episode:
    """To the right, a tenth per step."""
    geometry = np.zeros((steps + 1, 8))
    geometry[:, 0] = 0.1 * np.arange(steps + 1)
    actions = np.full((steps, 1), 0.5)
    return msrl.make_episode(
        "line", geometry[:, :2], actions, np.arange(steps), geometry, truncated=True, **others
    )


def test_datasets_of_the_command(collected: Path, tmp_path: Path) -> None:
    data = msrl.read_dataset(collected)
    assert len(data) == len(data.episodes) == 12
    episode = data.episodes[3]
    assert episode.observations.shape[0] == episode.geometry.shape[0] == episode.steps + 1
    assert episode.actions.shape == (episode.steps, 2) and not episode.discrete
    assert episode.values["mc"].shape == (episode.steps + 1,)
    assert data.steps == sum(episode.steps for episode in data.episodes)
    msrl.write_dataset(tmp_path / "copy.h5", data)
    assert msrl.read_dataset(tmp_path / "copy.h5").content_hash == data.content_hash
    with pytest.raises(msrl.UserError, match="force=True"):
        msrl.write_dataset(tmp_path / "copy.h5", data)
    msrl.write_dataset(tmp_path / "copy.h5", data, force=True)


def test_datasets_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.h5"
    values = {"mc": np.zeros(6)}
    msrl.write_dataset(path, msrl.Dataset([line(5, seed=3, values=values, facts={"slope": 2.0})]))
    episode = msrl.read_dataset(path).episodes[0]
    assert (episode.env, episode.seed, episode.facts) == ("line", 3, {"slope": 2.0})
    np.testing.assert_allclose(episode.geometry[:, 0], 0.1 * np.arange(6), rtol=1e-6)
    np.testing.assert_array_equal(episode.rewards, np.arange(5))
    msrl_command("library", "build", "--data", str(path), "--family", "line", "--out", str(tmp_path / "l"))
    assert len(msrl.read_library(tmp_path / "l")) == 5
    zeros = np.zeros((3, 8))
    steps = msrl.make_episode("x", zeros, np.array([1, 0]), [0, 0], zeros, terminated=True)
    assert steps.discrete and steps.actions.tolist() == [[1], [0]]
    for bad in (
        msrl.make_episode("x", zeros, np.zeros((2, 1)), [0, 0, 0], zeros),
        msrl.make_episode("x", zeros, np.zeros((2, 1)), [0, np.nan], zeros),
    ):
        with pytest.raises(msrl.UserError):
            msrl.Dataset([bad])


def test_libraries(tmp_path: Path) -> None:
    library = msrl.build_library(msrl.Dataset([line(20)]), "line", length=2, stride=2)
    assert len(library) == 10 and library.family == "line"
    context = np.zeros(8)
    context[0] = 0.41
    slots, distances = library.query(context, 3)
    assert [library.segment(int(slot)).context[0] for slot in slots] == pytest.approx([0.4, 0.6, 0.2])
    np.testing.assert_allclose(distances, [0.01, 0.19, 0.21], rtol=1e-4)
    nearest = library.segment(int(slots[0]))
    assert (nearest.length, nearest.reward_sum, nearest.env) == (2, 4 + 5, "line")
    assert nearest.tail_geometry[0] == pytest.approx(0.6)
    assert library.matrix(int(slots[0])).horizon_entry == 2
    assert len(library.query(context, 100)[0]) == 10
    assert len(library.query(context, 100, radius=0.2)[0]) == 2
    assert len(library.query(context, 100, head_action=[0.5])[0]) == 10
    assert len(library.query(context, 100, head_action=[0.9], action_radius=0.1)[0]) == 0
    np.testing.assert_array_equal(library.query(context, 3, exactly=True)[0], slots)
    library.save(tmp_path / "library.safetensors")
    again = msrl.read_library(tmp_path / "library.safetensors")
    np.testing.assert_array_equal(again.query(context, 3)[0], slots)
    assert "10" in msrl_command("library", "show", str(tmp_path / "library.safetensors"))
    cases: list[tuple[Any, str]] = [
        (lambda: library.query(np.zeros(3)), "must have 8 numbers, got 3"),
        (lambda: library.query(context * np.nan), "not finite"),
        (lambda: library.query(context, 0), "at least 1"),
        (lambda: library.query(context, head_action=[1, 2]), "must have 1 numbers, got 2"),
        (lambda: library.segment(10), "slot 10 is not in 0 to 9"),
        (lambda: library.matrix(-1), "slot -1"),
        (lambda: library.save(tmp_path / "library.safetensors"), "force=True"),
        (lambda: msrl.build_library(msrl.Dataset([line(3)]), "x", policy="best"), "unknown policy"),
        (lambda: msrl.build_library(msrl.Dataset([line(3)]), "x", length=4), "has 4 steps"),
        (lambda: msrl.read_library(tmp_path / "nothing"), "nothing"),
    ]
    for call, message in cases:
        with pytest.raises(msrl.UserError, match=message):
            call()


def test_artefacts(tmp_path: Path) -> None:
    path = tmp_path / "own.safetensors"
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    msrl.write_artefact(
        path,
        "own-kind",
        {"weights": weights.T, "counts": np.array([3, 4]), "bias": np.zeros(2)},
        lift=msrl.aligned_lift(),
        shape={"width": "3"},
        made={"dataset": "none"},
    )
    artefact = msrl.read_artefact(path)
    assert (artefact.kind, artefact.lift_kind, artefact.shape["width"]) == ("own-kind", "compact", "3")
    assert artefact.made["dataset"] == "none"
    assert artefact.parameter_count == 8
    np.testing.assert_array_equal(artefact.tensors["weights"], weights.T)
    assert artefact.tensors["counts"].dtype == np.int64
    with pytest.raises(msrl.UserError, match="force=True"):
        msrl.write_artefact(path, "own-kind", {})
    with pytest.raises(msrl.UserError, match="has type complex128"):
        msrl.write_artefact(tmp_path / "b", "own-kind", {"a": np.zeros(1, complex)})
    with pytest.raises(msrl.UserError):
        msrl.write_artefact(tmp_path / "b", "own-kind", {"a": np.array([np.nan])})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(msrl.UserError):
        msrl.read_artefact(path)


def test_an_artefact_of_the_command_starts_a_run(collected: Path, tmp_path: Path) -> None:
    branch = tmp_path / "branch.safetensors"
    held_out = collect(tmp_path / "held-out.h5", 4, "held-out")
    data = ["--data", str(collected), "--held-out", str(held_out)]
    msrl_command("pretrain", *data, "--set", "target=mc", "--updates", "20", "--out", str(branch))
    artefact = msrl.read_artefact(branch)
    assert artefact.kind == "value-branch" and artefact.made["updates"] == "20"
    assert artefact.parameter_count > 0
    library = msrl.build_library(msrl.read_dataset(collected), "point-rooms")
    assert len(library) > 10
    settings = {"hidden_width": 16, "batch_size": 16, "random_steps": 60}
    run = msrl.train(
        "Pendulum-v1",
        "msrl",
        150,
        init=branch,
        settings=settings,
        geometry={"position": [1, 0], "posture": 1},
        out=tmp_path / "run",
        eval_episodes=1,
    )
    assert run.facts["init"] != ""
    assert run.status["state"] == "finished"
