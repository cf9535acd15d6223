"""Training in environments of msrl and in any other with Gymnasium's interface.

    msrl.train("Pendulum-v1", agent="sac", steps=10_000)

The loop, the run directory and the checkpoints are those of `msrl train`.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

from msrl import _core
from msrl._core import Progress, UserError
from msrl.envs import option_list
from msrl.runs import Run
from msrl.targets import (
    EnvLike,
    Geometry,
    Target,
    builtin_id,
    default_geometry,
    recorded_target,
)

__all__ = ["Progress", "resume", "train"]

Callback = Callable[[Progress], bool | None]

_LOG = logging.getLogger("msrl")


def train(
    env: EnvLike,
    agent: str,
    steps: float,
    *,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    init: str | os.PathLike[str] | None = None,
    library: str | os.PathLike[str] | None = None,
    geometry: Geometry | None = None,
    settings: Mapping[str, Any] | None = None,
    env_options: Mapping[str, Any] | None = None,
    callbacks: Iterable[Callback] = (),
    name: str | None = None,
    step_limit: int | None = None,
    reward_scale: float = 1.0,
    gamma: float = 0.99,
    success: str | None = None,
    eval_every: int = 0,
    eval_episodes: int = 0,
    log_every: int = 1000,
    checkpoint_steps: int = 0,
    checkpoint_seconds: float = 300.0,
    step_seconds: float | None = None,
) -> Run:
    """Trains an agent and returns its run; does what `msrl train` does.

    `env` is an id (of msrl or of Gymnasium, with `env_options`), an environment, or a function
    without arguments that makes one. Evaluation has one of its own: made the same way, or a copy.

    agent, settings: `msrl agents`, `msrl config AGENT`.
    out: the run's directory; runs/ENV/AGENT/SEED if it is not given.
    init, library: what `msrl train --init` and `--library` take.
    callbacks: called a few times per second and after every evaluation with a Progress; one that
        returns False stops the run, with a checkpoint.
    eval_every, eval_episodes: 0 for a schedule with at most half as many steps as training.

    For environments that are not msrl's own:

    geometry: which entries of the observation are position, goal, motion, posture (SlotMap), or a
        function of the observation that returns the 8 slots, or "info": they are in
        `info["geometry"]`. Needed by agents that learn from matrices.
    name: what the run calls the environment.
    step_limit: the most steps of an episode, if the environment does not say.
    reward_scale: a large reward; values and matrices use reward / reward_scale.
    gamma: the discount.
    success: entry of `info` that says whether the task is solved.
    step_seconds: a reset or step of the environment that takes longer ends the run with a
        TimeoutError. Python code and waiting (sleep, sockets, locks, subprocesses) can be ended so;
        compiled code that never comes back cannot.

    What the environment raises ends the run and comes out here. So does Ctrl-C, after a checkpoint.
    In all cases `msrl.resume` can go on.
    """
    built_in = builtin_id(env)
    target = None
    if built_in is None:
        target = Target(
            env,
            default_geometry(env, agent) if geometry is None else geometry,
            env_options=env_options or {},
            name=name,
            step_limit=step_limit,
            reward_scale=reward_scale,
            gamma=gamma,
            success=success,
        )
    elif (geometry, name, step_limit, reward_scale, gamma, success) != (None, None, None, 1, 0.99, None):
        raise UserError(f"'{env}' says itself what geometry, name, limits and scales are")
    env_id = built_in or (target.name if target else "")
    path = Path(f"runs/{env_id}/{agent}/{seed}") if out is None else Path(out)
    _carry(
        path,
        target,
        lambda row, conduct: _core.train(
            run=str(path),
            env=env_id,
            row=row,
            env_settings=option_list(env_options or {}) if target is None else [],
            agent=agent,
            settings=option_list(settings or {}),
            seed=_count("seed", seed),
            steps=_count("steps", steps),
            eval_every=_count("eval_every", eval_every),
            eval_episodes=_count("eval_episodes", eval_episodes),
            log_every=_count("log_every", log_every),
            init=_text(init),
            library=_text(library),
            conduct=conduct,
        ),
        callbacks,
        checkpoint_steps,
        checkpoint_seconds,
        step_seconds,
    )
    return Run(path)


def resume(
    run: str | os.PathLike[str],
    env: EnvLike | None = None,
    *,
    steps: float | None = None,
    geometry: Geometry | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint_steps: int = 0,
    checkpoint_seconds: float = 300.0,
    step_seconds: float | None = None,
) -> Run:
    """Goes on with a run that was stopped, or with more `steps` after its end.

    `env` as in `train`, where the run's was neither msrl's nor made by an id; `geometry` where it
    was a function. UserError if it is another environment than the run's. `step_seconds` as in
    `train`; it is no part of the run, so it is given again.

    The result is that of a run without a stop, bit for bit, if equal seeds and actions make equal
    episodes in the environment: its state is not written down, so the episode is played again up to
    where it was. If that leads elsewhere, a warning says so; this episode ends with its next step,
    which begins where it was and ends elsewhere, and training goes on with a new one.
    """
    path = Path(run)
    target = recorded_target(Run(path).facts["env"], env, geometry)
    _carry(
        path,
        target,
        lambda row, conduct: _core.resume(
            run=str(path),
            row=row,
            steps=None if steps is None else _count("steps", steps),
            conduct=conduct,
        ),
        callbacks,
        checkpoint_steps,
        checkpoint_seconds,
        step_seconds,
    )
    return Run(path)


class _Stop:
    """Turns Ctrl-C into a stop at the next step, with a checkpoint; a second one is immediate."""

    def __init__(self) -> None:
        self.wanted = False
        self.interrupted = False
        self._before: Any = None

    def __enter__(self) -> _Stop:
        mine = threading.current_thread() is threading.main_thread()
        if mine and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.wanted = self.interrupted = True


class _StepLimit:
    """Entered around single steps: what takes longer is a TimeoutError there.

    Installed for a run, in the main thread, which alone gets signals.
    """

    def __init__(self, seconds: float, name: str) -> None:
        if not 0 < seconds < float("inf"):
            raise UserError(f"step_seconds is {seconds!r}; it should be a positive number")
        if threading.current_thread() is not threading.main_thread():
            raise UserError("step_seconds needs the main thread, which gets the alarm")
        self._seconds, self._name = seconds, name
        self._before = signal.signal(signal.SIGALRM, self._ring)

    def __enter__(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    def remove(self) -> None:
        signal.signal(signal.SIGALRM, self._before)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"{self._name}: a reset or step takes more than {self._seconds:g} s")


def _carry(
    path: Path,
    target: Target | None,
    run: Callable[[_core.PythonEnvRow | None, _core.Conduct], bool],
    callbacks: Iterable[Callback],
    checkpoint_steps: int,
    checkpoint_seconds: float,
    step_seconds: float | None,
) -> None:
    """Runs to the end, or until something stops it; the target is closed then."""
    called = list(callbacks)
    if step_seconds is not None and target is None:
        raise UserError("step_seconds is for environments of Python")
    with ExitStack() as ends:
        if target is not None:
            ends.callback(target.close)
        if target is not None and step_seconds is not None:
            target.limit = limit = _StepLimit(step_seconds, target.name)
            ends.callback(limit.remove)
        stop = ends.enter_context(_Stop())

        def on_progress(progress: Progress) -> None:
            for callback in called:
                if callback(progress) is False:
                    stop.wanted = True

        conduct = _core.Conduct(
            checkpoint_steps=checkpoint_steps,
            checkpoint_seconds=checkpoint_seconds,
            on_progress=on_progress,
            on_warning=lambda text: warnings.warn(text, stacklevel=2),
            on_notice=_LOG.info,
            stop=lambda: stop.wanted,
        )
        try:
            finished = run(None if target is None else target.row(), conduct)
        except Exception as error:
            if (path / "run.json").exists() and not isinstance(error, UserError):
                error.add_note(f"the run in {path} stopped; msrl.resume continues at its checkpoint")
            raise
    if not finished and stop.interrupted:
        raise KeyboardInterrupt(f"stopped with a checkpoint; continue with msrl.resume({str(path)!r})")


def _count(name: str, value: float) -> int:
    whole = not isinstance(value, bool) and isinstance(value, (int, float)) and value == value // 1
    if not whole or not 0 <= value < 2**63:
        raise UserError(f"{name} is {value!r}; it should be a whole number, at least 0")
    return int(value)  # 1e5 is one


def _text(path: str | os.PathLike[str] | None) -> str:
    return "" if path is None else os.fspath(path)
