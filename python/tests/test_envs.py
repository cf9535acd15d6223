from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import msrl_command
from gymnasium.utils.env_checker import check_env

import msrl

IDS = sorted(msrl.environments())


def actions_of(space: gymnasium.Space[Any], count: int) -> list[Any]:
    space.seed(3)
    return [space.sample() for _ in range(count)]


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasium_accepts(env_id: str) -> None:
    env = gymnasium.make(env_id, disable_env_checker=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # a humanoid's contact forces have no bound, in Gymnasium's own task neither
        warnings.filterwarnings("ignore", message=".*Box observation space m.*infinity")
        check_env(env.unwrapped)
    env.close()


def test_all_environments_of_the_command_line_are_there() -> None:
    assert len(IDS) == len(set(msrl.environments().values())) >= 29
    assert "msrl/Hopper-v5" in IDS and "msrl/MicroGrid-v0" in IDS
    assert msrl.gymnasium_id("hopper-velocity") == "msrl/HopperVelocity-v5"
    listed = msrl_command("envs")
    for env in msrl.environments().values():
        assert env in listed


def test_an_episode_can_be_described() -> None:
    env = gymnasium.make("msrl/PusherPush-v5").unwrapped
    assert isinstance(env, msrl.MsrlEnv)
    spec = env.native_spec
    _, info = env.reset(seed=1)
    x, a, r = [info["geometry"]], [], []
    for action in actions_of(env.action_space, 20):
        _, reward, _, _, info = env.step(action)
        assert info["success"] in (True, False)
        x.append(info["geometry"])
        a.append(env.embed_action(action))
        r.append(reward / spec.reward_scale)
    matrix = msrl.describe(x, a, r, msrl.aligned_lift())
    assert matrix.horizon_entry == 20
    assert np.shape(x) == (21, 8) and np.shape(a) == (20, 10)
    assert np.linalg.norm(a) > 0


def test_the_seed_decides_the_episodes() -> None:
    def episodes(seed: int) -> list[Any]:
        env = gymnasium.make("msrl/MicroGrid-v0")
        return [env.reset(seed=seed)[0], *(env.reset()[0] for _ in range(3))]

    first = episodes(5)
    np.testing.assert_array_equal(first, episodes(5))
    assert not np.array_equal(first, episodes(6))
    assert not np.array_equal(first[1], first[2])
    fresh = [gymnasium.make("msrl/MicroGrid-v0").reset()[0] for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_snapshots_continue() -> None:
    env = gymnasium.make("msrl/Hopper-v5").unwrapped
    assert isinstance(env, msrl.MsrlEnv)
    env.reset(seed=1)
    first, *others = actions_of(env.action_space, 5)
    env.step(first)
    snapshot = env.native.snapshot()
    once = [env.step(action)[0] for action in others]
    env.native.restore(snapshot)
    np.testing.assert_array_equal(once, [env.step(action)[0] for action in others])
    with pytest.raises(msrl.UserError):
        env.native.restore(snapshot[:-1])


def test_options_and_errors() -> None:
    assert gymnasium.make("msrl/AntmazeUmaze-v5", continuing=True, reward="dense") is not None
    with pytest.raises(msrl.UserError, match="did you mean 'version'"):
        gymnasium.make("msrl/Hopper-v5", versoin="v4")
    with pytest.raises(msrl.UserError, match="rgb_array"):
        msrl.MsrlEnv("hopper", render_mode="human")
    env = msrl.MsrlEnv("hopper")
    with pytest.raises(msrl.UserError):
        env.step(np.zeros(3))
    env.reset(seed=0)
    for bad, message in [(np.zeros(2), "has 3 numbers, got 2"), (np.full(3, np.nan), "finite|nan")]:
        with pytest.raises(msrl.UserError, match=message):
            env.step(bad)
    grid = msrl.MsrlEnv("micro-grid")
    grid.reset(seed=0)
    with pytest.raises(msrl.UserError, match="is not in 0 to"):
        grid.step(99)


def test_pictures() -> None:
    env = gymnasium.make("msrl/FourRoomsDense-v0", render_mode="rgb_array", width=64, height=48)
    env.reset(seed=0)
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    assert picture.shape == (48, 64, 3) and picture.dtype == np.uint8
    assert len(np.unique(picture)) > 2


@pytest.mark.parametrize("env_id", ["msrl/Hopper-v5", "msrl/MicroGrid-v0", "msrl/FourRoomsDense-v0"])
@pytest.mark.parametrize("threads", [1, 2])
def test_each_of_many_plays_like_one(env_id: str, threads: int) -> None:
    many = gymnasium.make_vec(env_id, num_envs=3, threads=threads)
    singles = [gymnasium.make(env_id) for _ in range(3)]
    observations, info = many.reset(seed=10)
    for i, single in enumerate(singles):
        observation, single_info = single.reset(seed=10 + i)
        np.testing.assert_array_equal(observations[i], observation)
        np.testing.assert_array_equal(info["geometry"][i], single_info["geometry"])
    ends = 0
    for actions in actions_of(many.action_space, 300):
        observations, rewards, terminated, truncated, info = many.step(actions)
        for i, single in enumerate(singles):
            observation, reward, single_terminated, single_truncated, seen = single.step(actions[i])
            assert (reward, single_terminated, single_truncated) == (
                rewards[i],
                terminated[i],
                truncated[i],
            )
            if single_terminated or single_truncated:
                ends += 1
                np.testing.assert_array_equal(info["final_obs"][i], observation)
                final = info["final_info"]
                assert info["_final_obs"][i] and info["_final_info"][i] and final["_geometry"][i]
                np.testing.assert_array_equal(final["geometry"][i], seen["geometry"])
                observation, seen = single.reset()
            elif "final_obs" in info:
                assert info["final_obs"][i] is None and not info["_final_obs"][i]
            np.testing.assert_array_equal(observations[i], observation)
            np.testing.assert_array_equal(info["geometry"][i], seen["geometry"])
            if "success" in seen:
                assert info["success"][i] == seen["success"]
    assert ends >= 3
    assert many.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.SAME_STEP


def arrays_of(result: Any) -> list[Any]:
    *arrays, info = result
    ends = [info["_final_obs"], info["final_info"]["geometry"]] if "final_obs" in info else []
    return [*arrays, info["geometry"], info["success"], *ends]


def test_arrays_that_are_kept_stay_as_they_were() -> None:
    envs = gymnasium.make_vec("msrl/MicroGrid-v0", num_envs=3)
    kept = arrays_of(envs.reset(seed=1))
    copies = [array.copy() for array in kept]
    view = envs.step(np.zeros(3, np.int64))[0][1:, ::2]  # nothing else holds this array
    seen = view.copy()
    last = []
    for actions in actions_of(envs.action_space, 300):
        result = envs.step(actions)
        kept += arrays_of(result)
        copies += [array.copy() for array in arrays_of(result)]
        for i in np.flatnonzero(result[4].get("_final_obs", [])):
            last.append((result[4]["final_obs"][i], result[4]["final_obs"][i].copy()))
    assert len(last) > 3
    assert len({array.ctypes.data for array in kept}) == len(kept) > 1800
    for array, copy in [*zip(kept, copies, strict=True), *last, (view, seen)]:
        np.testing.assert_array_equal(array, copy)


def test_arrays_that_nobody_keeps_are_used_again() -> None:
    envs = gymnasium.make_vec("msrl/MicroGrid-v0", num_envs=3)
    envs.reset(seed=1)
    used: list[set[int]] = [set() for _ in range(8)]
    for actions in actions_of(envs.action_space, 100):
        for places, array in zip(used, arrays_of(envs.step(actions)), strict=False):
            places.add(array.ctypes.data)
    assert all(1 <= len(places) <= 4 for places in used)


def test_actions_of_any_type() -> None:
    def play(env_id: str, actions: Any) -> Any:
        envs = gymnasium.make_vec(env_id, num_envs=2)
        envs.reset(seed=4)
        return envs.step(actions)[0]

    wanted = play("msrl/Hopper-v5", np.array([[0.5, -1, 0.25], [1, 0, -0.5]]))
    assert not np.array_equal(wanted, play("msrl/Hopper-v5", np.zeros((2, 3))))
    single = np.array([[0.5, -1, 0.25], [1, 0, -0.5]], np.float32)
    for actions in (single, single.tolist(), np.asfortranarray(single), single.astype(np.float16)):
        np.testing.assert_array_equal(wanted, play("msrl/Hopper-v5", actions))
    wanted = play("msrl/MicroGrid-v0", np.array([1, 3]))
    assert not np.array_equal(wanted, play("msrl/MicroGrid-v0", np.array([2, 0])))
    for indices in ([1, 3], np.array([1, 3], np.uint8), np.array([1, 9, 3, 9])[::2]):
        np.testing.assert_array_equal(wanted, play("msrl/MicroGrid-v0", indices))


def test_errors_of_many() -> None:
    for size, threads, message in [(0, 1, "num_envs"), (2, 0, "threads")]:
        with pytest.raises(msrl.UserError, match=message):
            msrl.MsrlVectorEnv("hopper", num_envs=size, threads=threads)
    many = msrl.MsrlVectorEnv("hopper", num_envs=2)
    with pytest.raises(msrl.UserError, match="got 3 seeds"):
        many.reset(seed=[1, 2, 3])
    many.reset(seed=[1, 2])
    with pytest.raises(msrl.UserError, match="got 1 actions"):
        many.step(np.zeros((1, 3)))
    with pytest.raises(msrl.UserError, match="has 3 numbers, got 4"):
        many.step(np.zeros((2, 4)))
    with pytest.raises(msrl.UserError, match="have two dimensions"):
        many.step(np.zeros(3))
    with pytest.raises(ValueError, match="could not convert"):
        many.step([["left", "right", "up"]] * 2)
    grids = msrl.MsrlVectorEnv("micro-grid", num_envs=2)
    grids.reset(seed=0)
    with pytest.raises(msrl.UserError, match="is not in 0 to"):
        grids.step([0, 99])
    with pytest.raises(msrl.UserError, match="have one dimension"):
        grids.step([[0, 1]])
