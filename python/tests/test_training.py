"""msrl.train and msrl.resume, mostly in a small environment of this file's own."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import msrl_command
from gymnasium import spaces

import msrl

# learns from step 60 on, with networks that cost nothing
SMALL: dict[str, Any] = {"hidden_width": 16, "batch_size": 16, "random_steps": 60}
SCHEDULE: dict[str, Any] = {"eval_every": 100, "eval_episodes": 2, "log_every": 50}
LINE = {"position": 0, "goal": {"at": [1]}, "motion": 1}


class Line(gymnasium.Env[Any, Any]):
    """A point on a line that should go to 1; the push is in [-2, 2]. 25 steps."""

    observation_space = spaces.Box(-3.0, 3.0, (2,), np.float32)
    action_space = spaces.Box(-2.0, 2.0, (1,), np.float32)
    made = 0

    def __init__(self, fault: Callable[[Line, tuple[Any, ...]], Any] | None = None) -> None:
        type(self).made += 1
        self.steps, self.all_steps, self.closed = 0, 0, False
        self.fault = fault

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.speed, self.steps = self.np_random.uniform(-1, 0), 0.0, 0
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        self.speed = 0.8 * self.speed + 0.05 * float(action[0])
        self.place = float(np.clip(self.place + self.speed, -3, 3))
        self.steps += 1
        self.all_steps += 1
        there = abs(self.place - 1) < 0.05
        result = self.seen(), -abs(self.place - 1), there, self.steps >= 25, {"there": there}
        return self.fault(self, result) if self.fault else result

    def seen(self) -> Any:
        return np.array([self.place, self.speed], np.float32)

    def close(self) -> None:
        self.closed = True


def train(env: Any, out: Path, steps: int = 300, **others: Any) -> msrl.Run:
    chosen: dict[str, Any] = {"agent": "sac", "settings": SMALL, "step_limit": 25, "geometry": LINE}
    return msrl.train(env, steps=steps, out=out, **{**chosen, **SCHEDULE, **others})


def records(run: msrl.Run) -> list[str]:
    return [(run.path / name).read_text() for name in ("evals.jsonl", "metrics.jsonl")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> msrl.Run:
    """300 steps without a stop."""
    return train(Line, tmp_path_factory.mktemp("whole") / "run", success="there")


def test_a_run_like_any_other(whole: msrl.Run, tmp_path: Path) -> None:
    assert whole.status["state"] == "finished"
    assert whole.evals["step"].tolist() == [0, 100, 200, 300]
    assert whole.config["env"]["success"] == "there"
    assert "success_rate" in whole.evals
    assert whole.config["run"]["env"] == "Line"
    page = tmp_path / "report.html"
    msrl_command("report", str(whole.path.parent), "--html", str(page))
    assert "Line" in page.read_text()


def test_equal_seeds_make_equal_runs(whole: msrl.Run, tmp_path: Path) -> None:
    again = train(Line(), tmp_path / "instance", success="there")
    assert records(again) == records(whole)
    other = train(Line, tmp_path / "other", success="there", seed=1)
    assert records(other) != records(whole)


def test_one_environment_for_training_and_one_for_evaluation(tmp_path: Path) -> None:
    made: list[Line] = []

    def make() -> Line:
        made.append(Line())
        return made[-1]

    train(make, tmp_path / "factory")
    assert len(made) == 2
    assert made[0].all_steps == 300 < 300 + made[1].all_steps
    assert all(env.closed for env in made)
    mine = Line()
    train(mine, tmp_path / "instance")
    assert mine.all_steps == 300 and not mine.closed


def test_what_the_agent_sees_and_does() -> None:
    env = msrl.TargetEnv(Line(), LINE)
    observation, info = env.reset(seed=1)
    assert observation.dtype == np.float64
    place = observation[0]
    np.testing.assert_allclose(info["geometry"], [place, 0, 1 - place, 0, 0, 0, 0, 0])
    observation, _, _, _, info = env.step([1.0])
    assert observation[1] == np.float32(0.1)  # a push of 2
    np.testing.assert_allclose(info["geometry"][4], 0.1, rtol=1e-6)


def test_policy_plays_the_run_again(whole: msrl.Run) -> None:
    policy, env = whole.policy(), whole.make_env(env=Line)
    observation, info = env.reset(seed=3)
    total, reward, ended = 0.0, None, False
    while not ended:
        action = policy(observation, info["geometry"], reward)
        observation, reward, terminated, truncated, info = env.step(action)
        total, ended = total + float(reward), terminated or truncated
    returns = np.concatenate(whole.evals["returns"])
    assert returns.min() - 10 < total < returns.max() + 10
    with pytest.raises(msrl.UserError, match="give it again: env="):
        whole.make_env()


class Broken(Exception):
    pass


def test_resumes_bit_for_bit_after_an_exception(whole: msrl.Run, tmp_path: Path) -> None:
    def fault(env: Line, result: tuple[Any, ...]) -> Any:
        if env.all_steps == 180:
            raise Broken("the cable fell out\nonce more")
        return result

    path = tmp_path / "run"
    with pytest.raises(Broken, match="cable") as caught:
        train(lambda: Line(fault), path, success="there", checkpoint_steps=37)
    assert "msrl.resume" in caught.value.__notes__[0]
    run = msrl.Run(path)
    assert run.status["state"] == "failed"
    assert run.status["message"] == "the environment raised Broken: the cable fell out"
    assert run.status["step"] == 179
    # the newest checkpoint is of step 148, in the middle of an episode
    names = sorted(file.name for file in (path / "checkpoints").iterdir())
    assert names[-1] == "step-0000000000148.safetensors"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = msrl.resume(path, Line)
    assert resumed.status["state"] == "finished"
    assert records(resumed) == records(whole)


def test_resumes_bit_for_bit_after_ctrl_c(whole: msrl.Run, tmp_path: Path) -> None:
    def fault(env: Line, result: tuple[Any, ...]) -> Any:
        if env.all_steps == 160:
            os.kill(os.getpid(), signal.SIGINT)
        return result

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="msrl.resume"):
        train(Line(fault), tmp_path / "run", success="there")
    assert signal.getsignal(signal.SIGINT) is before
    run = msrl.Run(tmp_path / "run")
    assert run.status["state"] == "interrupted"
    assert run.status["step"] == 160
    assert records(msrl.resume(run.path, Line)) == records(whole)
    # a new budget goes on where the old one ended
    longer = msrl.resume(run.path, Line, steps=400)
    assert longer.evals["step"].tolist() == [0, 100, 200, 300, 400]


def test_an_environment_that_hangs_is_left_by_a_second_ctrl_c(
    whole: msrl.Run, tmp_path: Path
) -> None:
    def fault(env: Line, result: tuple[Any, ...]) -> Any:
        if env.all_steps == 160:
            for delay in (0.2, 0.6):
                threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
            time.sleep(600)
        return result

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        train(Line(fault), tmp_path / "run", success="there", checkpoint_steps=37)
    assert time.monotonic() - started < 60
    run = msrl.Run(tmp_path / "run")
    assert run.status["state"] == "failed"
    assert "the environment raised KeyboardInterrupt" in run.status["message"]
    assert records(msrl.resume(run.path, Line)) == records(whole)


def test_an_environment_that_hangs_is_ended_by_its_limit(whole: msrl.Run, tmp_path: Path) -> None:
    def fault(env: Line, result: tuple[Any, ...]) -> Any:
        if env.all_steps == 160:
            time.sleep(600)
        if env.all_steps == 161:
            while True:  # of no system call
                pass
        return result

    before = signal.getsignal(signal.SIGALRM)
    started = time.monotonic()
    env = Line(fault)
    others: dict[str, Any] = {"checkpoint_steps": 37, "step_seconds": 0.5}
    with pytest.raises(TimeoutError, match=r"Line: a reset or step takes more than 0.5 s"):
        train(env, tmp_path / "run", success="there", **others)
    run = msrl.Run(tmp_path / "run")
    assert run.status["state"] == "failed" and run.status["step"] == 159
    assert "the environment raised TimeoutError" in run.status["message"]
    with pytest.raises(TimeoutError):
        msrl.resume(run.path, env, **others)
    assert time.monotonic() - started < 60
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    # a limit that is not met changes nothing
    assert records(msrl.resume(run.path, Line, step_seconds=60)) == records(whole)
    for bad in (0, -1, float("nan")):
        with pytest.raises(msrl.UserError, match="step_seconds is"):
            train(Line, tmp_path / "bad", step_seconds=bad)
    with pytest.raises(msrl.UserError, match="environments of Python"):
        msrl.train("four-rooms-sparse", "random", 10, out=tmp_path / "own", step_seconds=1)


def test_callbacks_stop_and_fail(whole: msrl.Run, tmp_path: Path) -> None:
    seen: list[int] = []

    def stop_at_200(progress: msrl.Progress) -> bool | None:
        seen.append(progress.step)
        return False if progress.step >= 200 else None

    run = train(Line, tmp_path / "stopped", success="there", callbacks=[stop_at_200])
    assert {0, 100, 200} <= set(seen)
    assert run.status["state"] == "interrupted" and run.status["step"] == 200
    assert records(msrl.resume(run.path, Line)) == records(whole)

    def fail(progress: msrl.Progress) -> None:
        raise Broken(repr(progress))

    with pytest.raises(Broken, match="step 0 of 300"):
        train(Line, tmp_path / "failed", callbacks=[fail])
    assert "a callback raised Broken" in msrl.Run(tmp_path / "failed").status["message"]


def test_an_environment_that_repeats_nothing(tmp_path: Path) -> None:
    wind = np.random.default_rng(0)

    def blow(env: Line, result: tuple[Any, ...]) -> Any:
        env.place += wind.normal(scale=0.01)
        return result

    run = train(
        lambda: Line(blow),
        tmp_path / "run",
        callbacks=[lambda progress: progress.step < 100],
        checkpoint_steps=30,
    )
    assert run.status["state"] == "interrupted"
    (newest := max((run.path / "checkpoints").iterdir())).unlink()  # that of step 100 is at an end
    assert newest.name.endswith("100.safetensors")
    with pytest.warns(UserWarning, match="does not repeat an episode"):
        resumed = msrl.resume(run.path, lambda: Line(blow))
    assert resumed.status["state"] == "finished"


def changed(position: int, value: Any) -> Callable[[Line, tuple[Any, ...]], Any]:
    def fault(env: Line, result: tuple[Any, ...]) -> Any:
        if env.all_steps < 30:
            return result
        return (*result[:position], value, *result[position + 1 :])

    return fault


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (changed(0, np.zeros(3)), msrl.UserError, r"shape \(3,\), its space \(2,\)"),
        (changed(0, ["here", "fast"]), msrl.UserError, "no numbers"),
        (changed(0, np.array([0.0, np.nan])), msrl.RunError, r"observation\[1\] is nan"),
        (changed(1, np.inf), msrl.RunError, "the reward is inf"),
        (changed(1, "much"), msrl.UserError, "the reward is 'much', no number"),
        (lambda env, result: result[:4], msrl.UserError, "step should return .*, got 4"),
    ],
)
def test_bad_numbers_end_the_run(
    fault: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        train(Line(fault), tmp_path / "run", checkpoint_steps=10)
    run = msrl.Run(tmp_path / "run")
    assert run.status["state"] == "failed"
    assert re.search(message, run.status["message"])
    # the episode with the step that did it
    file = (run.path / "failure.safetensors").read_bytes()
    header = json.loads(file[8 : 8 + int.from_bytes(file[:8], "little")])
    assert re.search(message, file.decode(errors="replace"))
    made = header["__metadata__"]
    assert (made["step"], made["evaluating"]) == ("0", "yes")  # the evaluation before training
    shapes = {name: header[name]["shape"] for name in ("actions", "observation_before", "reward")}
    steps = shapes.pop("actions")[0]  # the last has no outcome
    assert steps == 1 if "got 4" in message else 1 < steps <= 25
    assert shapes == {"observation_before": [2], "reward": [0]}
    assert msrl.resume(run.path, Line).status["state"] == "finished"


def test_a_reset_that_fails(tmp_path: Path) -> None:
    class Never(Line):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            raise Broken("no power")

    with pytest.raises(Broken, match="no power"):
        train(Never, tmp_path / "run")
    assert msrl.Run(tmp_path / "run").status["state"] == "failed"


def test_resume_refuses_another_environment(whole: msrl.Run, tmp_path: Path) -> None:
    class Wide(Line):
        action_space = spaces.Box(-2.0, 2.0, (2,), np.float32)

    with pytest.raises(msrl.UserError, match="action_size was 1, is 2"):
        msrl.resume(whole.path, Wide)
    with pytest.raises(msrl.UserError, match="geometry was"):
        msrl.resume(whole.path, Line, geometry={"position": 1})
    with pytest.raises(msrl.UserError, match="give it again: env="):
        msrl.resume(whole.path)


def test_functions_as_geometry(tmp_path: Path) -> None:
    def slots(observation: Any) -> Any:
        return np.full(8, 100.0 * observation[0])

    assert np.abs(msrl.TargetEnv(Line(), slots).reset(seed=0)[1]["geometry"]).max() <= 4
    run = train(Line, tmp_path / "run", 100, geometry=slots, agent="msrl")
    assert run.config["env"]["geometry"].endswith("slots")
    with pytest.raises(msrl.UserError, match="geometry is the function .*slots"):
        msrl.resume(run.path, Line, steps=150)
    assert msrl.resume(run.path, Line, steps=150, geometry=slots).status["step"] == 150
    with pytest.raises(msrl.UserError, match=r"the geometry has shape \(2,\)"):
        train(Line, tmp_path / "short", geometry=lambda observation: observation)


def test_what_cannot_be_trained_on(tmp_path: Path) -> None:
    class Free(Line):
        action_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

    class Many(Line):
        action_space = spaces.Discrete(11)

    cases: list[tuple[Any, dict[str, Any], str]] = [
        (Line, {"geometry": None, "agent": "msrl"}, "say which entries"),
        (Line, {"step_limit": None}, "give step_limit="),
        (Line, {"agent": "dqn"}, "discrete|continuous"),
        (Line, {"agent": "sacc"}, "did you mean 'sac'"),
        (Line, {"settings": {"hidden": 3}}, "hidden"),
        (Line, {"steps": -1}, "whole number"),
        (Line, {"seed": -1}, "whole number"),
        (Line, {"settings": {**SMALL, "plan": "library", "simulation_check": 3}, "agent": "msrl"}, "simulator"),
        (Free, {}, "bounded Box"),
        (Many, {"agent": "dqn"}, "there can be 10"),
        (lambda: 3, {}, "no gymnasium.Env"),
        (3, {}, "an environment, an id or a function"),
        ("hopper", {"geometry": LINE}, "says itself"),
    ]
    for env, others, message in cases:
        with pytest.raises(msrl.UserError, match=message):
            train(env, tmp_path / "run", **others)
        assert not (tmp_path / "run").exists(), message
    train(Line, tmp_path / "run", 50)
    with pytest.raises(msrl.UserError, match="holds a run already"):
        train(Line, tmp_path / "run", 50)


def test_other_spaces(tmp_path: Path) -> None:
    class Steps(gymnasium.Env[Any, Any]):
        """Three moves, the middle one is right; a table as observation."""

        observation_space = spaces.Dict({"side": spaces.Discrete(2), "way": spaces.Box(0, 1, (2, 1))})
        action_space = spaces.Discrete(3, start=-1)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            return self.seen(), {}

        def step(self, action: Any) -> Any:
            assert action in (-1, 0, 1)
            # a limit of its own, before that of the run
            return self.seen(), float(action == 0), False, bool(self.np_random.random() < 0.2), {}

        def seen(self) -> Any:
            return {"side": 1, "way": np.ones((2, 1), np.float32)}

    env = msrl.TargetEnv(Steps(), {"position": [1, 3]})
    np.testing.assert_array_equal(env.reset(seed=0)[0], [0, 1, 1, 1])
    run = train(Steps, tmp_path / "run", 200, agent="dqn", geometry={"position": [1, 3]})
    lengths = np.concatenate(run.evals["lengths"])
    assert 1 <= lengths.min() < lengths.max() <= 25
    assert run.metrics["train/episodes"][-1] > 200 / 25


def test_slot_maps() -> None:
    slots = msrl.SlotMap(
        {
            "position": {"entries": [0, 1], "unit": 2},
            "goal": {"place": [2, 3]},
            "motion": [None, 4],
            "posture": {"entries": 5, "unit": -1},
            "contact": 6,
        },
        7,
    )
    np.testing.assert_allclose(
        slots(np.array([2.0, 4.0, 3.0, 3.0, 0.5, 0.25, 1.0])), [1, 2, 0.5, -0.5, 0, 0.5, -0.25, 1]
    )
    assert str(slots) == str(msrl.SlotMap(dict(reversed(list(eval(str(slots).replace("null", "None")).items()))), 7))
    bad: list[tuple[Any, str]] = [
        ({"place": 1}, "no slot 'place'"),
        ({"position": 7}, "entries? 7; observations have 0 to 6|names entry 7"),
        ({"position": -1}, "names entry -1"),
        ({"position": [0, 1, 2]}, "2 slots at most, got 3"),
        ({"goal": {"at": [1]}}, "there is no position"),
        ({"motion": {"at": [1]}}, "needs one of entries"),
        ({"motion": {"entries": 0, "unit": 0}}, "unit of motion is 0"),
        ({"motion": {"entries": 0, "unit": "m"}}, "no finite number"),
        ([0, 1], "should be a table"),
    ]
    for value, message in bad:
        with pytest.raises(msrl.UserError, match=message):
            msrl.SlotMap(value, 7)


@pytest.mark.parametrize(
    ("env", "agent", "geometry"),
    [
        ("Pendulum-v1", "msrl", {"position": [1, 0], "goal": {"at": [0, 1]}, "posture": 1}),
        ("CartPole-v1", "msrl-dqn", {"position": 0, "motion": [1, 3], "posture": 2}),
    ],
)
def test_environments_of_gymnasium(env: str, agent: str, geometry: Any, tmp_path: Path) -> None:
    schedule = {"eval_every": 200, "eval_episodes": 1}
    chosen: dict[str, Any] = {"settings": SMALL, "geometry": geometry, "out": tmp_path / "run"}
    run = msrl.train(env, agent, 200, **chosen, **schedule)
    assert run.status["state"] == "finished"
    observation, info = run.make_env().reset(seed=0)
    action = run.policy()(observation, info["geometry"])
    assert np.all(np.abs(action) <= 1)
    assert msrl.resume(run.path, steps=250).status["step"] == 250


def test_own_environments_as_the_command_does(tmp_path: Path) -> None:
    ours = msrl.train("msrl/Reacher-v5", "sac", 200, settings=SMALL, out=tmp_path / "a", **SCHEDULE)
    sets = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    evals = ["--eval-every", "100", "--eval-episodes", "2", "--log-every", "50"]
    where = ["--env", "reacher", "--agent", "sac", "--steps", "200", "--run", str(tmp_path / "b")]
    msrl_command("train", *where, *sets, *evals)
    assert records(ours) == records(msrl.Run(tmp_path / "b"))
    assert msrl.resume(ours.path, steps=250).status["step"] == 250
    with pytest.raises(msrl.UserError, match="is msrl's own"):
        msrl.resume(ours.path, Line)
    wrapped = msrl.train(
        gymnasium.make("msrl/Reacher-v5"), "msrl", 100, settings=SMALL, out=tmp_path / "c", step_limit=50
    )
    assert wrapped.config["env"]["geometry"] == "info"


def test_other_threads_go_on(tmp_path: Path) -> None:
    beats = 0
    done = threading.Event()

    def beat() -> None:
        nonlocal beats
        while not done.is_set():
            beats += 1
            time.sleep(0.001)

    thread = threading.Thread(target=beat)
    thread.start()
    run: list[msrl.Run] = []
    # Ctrl-C is the main thread's business: training elsewhere does not touch it
    other = threading.Thread(target=lambda: run.append(train(Line, tmp_path / "run")))
    other.start()
    other.join()
    done.set()
    thread.join()
    assert run[0].status["state"] == "finished"
    assert beats > 10
