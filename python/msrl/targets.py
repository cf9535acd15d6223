"""Environments of others as agents of msrl see them."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from msrl import _core
from msrl._core import RunError, UserError
from msrl.envs import MsrlEnv, environments, option_list
from msrl.geometry import GEOMETRY_BOUND, SlotMap

__all__ = ["TargetEnv"]

AnyEnv = gymnasium.Env[Any, Any]
EnvLike = str | AnyEnv | Callable[[], AnyEnv]
Geometry = str | Mapping[str, Any] | Callable[[NDArray[np.float64]], Any]

# of an observation whose space has no bounds
_LOOSE_BOUND = 1e6
# by which a geometry in the records is a function, and one that the environment tells itself
_FUNCTION = "function "
_INFO = "info"


def builtin_id(env: object) -> str | None:
    """The id of one of msrl's own environments, given by it or by Gymnasium's id."""
    if not isinstance(env, str):
        return None
    known = environments()
    name = env.removeprefix("msrl:")
    return known.get(name, name if name in known.values() else None)


class TargetEnv(gymnasium.Wrapper[NDArray[np.float64], Any, Any, Any]):
    """An environment as agents of msrl see it.

    Observations are flat float64 arrays, actions indices from 0 or in [-1, 1], and `info` has the
    aligned `geometry`. What the inner environment returns is checked: UserError if it does not fit
    its own spaces, RunError if a number is not finite.
    """

    def __init__(self, env: AnyEnv, geometry: Geometry = _INFO, name: str = "") -> None:
        super().__init__(env)
        self._name = name or _name_of(env)
        self._inner = env.observation_space
        self._low, self._span = np.zeros(0), np.zeros(0)
        try:
            size = spaces.flatdim(self._inner)
        except (NotImplementedError, ValueError):
            raise UserError(f"{self._name}: observations of {self._inner} are no flat list") from None
        self.observation_bound = _bound(self._inner)
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self._set_actions(env.action_space)
        self.geometry_text = ""
        self._geometry = self._make_geometry(geometry, size)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        observation, info = self._parts("reset", self.env.reset(seed=seed, options=options), 2)
        return self._seen(observation, info)

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        parts = self._parts("step", self.env.step(self._played(action)), 5)
        observation, reward, terminated, truncated, info = parts
        try:
            value = float(reward)
        except (TypeError, ValueError):
            raise UserError(f"{self._name}: the reward is {reward!r}, no number") from None
        if not np.isfinite(value):
            raise RunError(f"{self._name}: the reward is {value}")
        seen, info = self._seen(observation, info)
        return seen, value, bool(terminated), bool(truncated), info

    def _set_actions(self, space: spaces.Space[Any]) -> None:
        if isinstance(space, spaces.Discrete):
            self._start = int(space.start)
            self.discrete, self.action_size = True, int(space.n)
            self.action_space = spaces.Discrete(self.action_size)
            if self.action_size > 10:
                raise UserError(f"{self._name} has {self.action_size} actions; there can be 10")
            return
        if not isinstance(space, spaces.Box) or not space.is_bounded():
            raise UserError(f"{self._name}: actions are {space}; they must be Discrete or a bounded Box")
        self.discrete, self.action_size = False, int(np.prod(space.shape))
        self._box = space
        self._low = np.asarray(space.low, np.float64).ravel()
        self._span = np.asarray(space.high, np.float64).ravel() - self._low
        self.action_space = spaces.Box(-1.0, 1.0, (self.action_size,), np.float64)

    def _played(self, action: Any) -> Any:
        if self.discrete:
            return int(action) + self._start
        unit = 0.5 * (np.clip(action, -1.0, 1.0) + 1.0)
        native = (self._low + unit * self._span).astype(self._box.dtype)
        return native.reshape(self._box.shape)

    def _parts(self, what: str, result: Any, count: int) -> Any:
        if not isinstance(result, tuple) or len(result) != count:
            got = f"{len(result)}" if isinstance(result, tuple) else type(result).__name__
            wanted = {2: "(observation, info)", 5: "(observation, reward, terminated, truncated, info)"}
            raise UserError(f"{self._name}: {what} should return {wanted[count]}, got {got}")
        return result

    def _seen(
        self, observation: Any, info: dict[str, Any]
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        flat = self._flat(observation)
        if not np.isfinite(flat).all():
            entry = int(np.flatnonzero(~np.isfinite(flat))[0])
            raise RunError(f"{self._name}: observation[{entry}] is {flat[entry]}")
        slots = np.asarray(self._geometry(flat, info), dtype=np.float64)
        if slots.shape != (8,):
            raise UserError(f"{self._name}: the geometry has shape {slots.shape}; it should be (8,)")
        if not np.isfinite(slots).all():
            raise RunError(f"{self._name}: the geometry is not finite: {slots}")
        return flat, {**info, "geometry": np.clip(slots, -GEOMETRY_BOUND, GEOMETRY_BOUND)}

    def _flat(self, observation: Any) -> NDArray[np.float64]:
        if not isinstance(self._inner, spaces.Box):
            try:
                return np.array(spaces.flatten(self._inner, observation), np.float64).ravel()
            except Exception as error:
                raise UserError(f"{self._name}: an observation is not of {self._inner}: {error}") from error
        array = np.asarray(observation)
        if array.dtype.kind not in "biuf":
            raise UserError(f"{self._name}: an observation has type {array.dtype}, no numbers")
        if array.shape != self._inner.shape:
            raise UserError(
                f"{self._name}: an observation has shape {array.shape}, its space {self._inner.shape}"
            )
        return array.astype(np.float64).ravel()  # a copy: the environment may go on using its own

    def _make_geometry(
        self, geometry: Geometry, size: int
    ) -> Callable[[NDArray[np.float64], dict[str, Any]], Any]:
        if isinstance(geometry, Mapping):
            slots = SlotMap(geometry, size)
            self.geometry_text = str(slots)
            return lambda observation, info: slots(observation)
        if callable(geometry):
            function = geometry
            self.geometry_text = _FUNCTION + getattr(geometry, "__qualname__", type(geometry).__name__)
            return lambda observation, info: function(observation)
        if geometry != _INFO:
            raise UserError(f"geometry is {geometry!r}; it should be a table, a function or 'info'")
        self.geometry_text = _INFO

        def told(observation: NDArray[np.float64], info: dict[str, Any]) -> Any:
            if "geometry" not in info:
                raise UserError(f"{self._name}: info has no 'geometry'; give geometry=")
            return info["geometry"]

        return told


def _name_of(env: AnyEnv) -> str:
    if env.spec is None:
        return type(env.unwrapped).__name__
    return env.spec.id.rpartition(":")[2].replace("/", "-")


def _bound(space: spaces.Space[Any]) -> float:
    flat = spaces.flatten_space(space)
    if not isinstance(flat, spaces.Box) or not flat.is_bounded():
        return _LOOSE_BOUND
    largest = float(np.max(np.abs([flat.low, flat.high])))
    return min(max(largest, 1e-6), _LOOSE_BOUND)


class _Player:
    """What C++ calls (python/src/python_env.h)."""

    def __init__(self, env: TargetEnv, success: str, limit: AbstractContextManager[Any]) -> None:
        self._env, self._success, self._limit = env, success, limit

    def reset(self, seed: int) -> tuple[Any, Any]:
        # environments may know seeds of 32 bits only
        with self._limit:
            observation, info = self._env.reset(seed=seed >> 33)
        return observation, info["geometry"]

    def step(self, action: Any) -> tuple[Any, ...]:
        with self._limit:
            observation, reward, terminated, truncated, info = self._env.step(action)
        success = bool(info.get(self._success, False)) if self._success else False
        return observation, info["geometry"], reward, terminated, truncated, success

    def other_course(self) -> None:
        warnings.warn(
            "the environment does not repeat an episode from its seed and actions: the one that was "
            "being played ends with its next step",
            stacklevel=1,
        )


class Target:
    """An environment of the user's for a run: what it is, and where copies come from.

    `extra_options` do not change what it is (a render mode).
    """

    def __init__(
        self,
        env: EnvLike,
        geometry: Geometry,
        *,
        env_options: Mapping[str, Any],
        extra_options: Mapping[str, Any] | None = None,
        name: str | None,
        step_limit: int | None,
        reward_scale: float,
        gamma: float,
        success: str | None,
    ) -> None:
        # around every reset and step of training and evaluation
        self.limit: AbstractContextManager[Any] = nullcontext()
        self._made: list[AnyEnv] = []
        self._make: Callable[[], AnyEnv] | None = None
        self._geometry, self._success = geometry, success or ""
        gymnasium_id = ""
        if isinstance(env, str):
            options = dict(env_options)
            gymnasium_id = f"{env} {json.dumps(options, sort_keys=True)}" if options else env
            made_with = {**options, **(extra_options or {})}
            self._make = lambda: gymnasium.make(env, **made_with)
        elif isinstance(env, gymnasium.Env):
            self._given: AnyEnv = env
        elif callable(env):
            self._make = env
        else:
            raise UserError(f"env is {env!r}; it should be an environment, an id or a function")
        if env_options and not isinstance(env, str):
            raise UserError("env_options are for an id; this environment is made already")
        try:
            first = self._given if self._make is None else self._new(self._make)
            self.name = name or _name_of(first)
            self._first: TargetEnv | None = TargetEnv(first, geometry, self.name)
            self.settings = self._settings(self._first, gymnasium_id, step_limit)
        except BaseException:
            self.close()
            raise
        self.settings |= {"reward_scale": repr(float(reward_scale)), "gamma": repr(float(gamma))}

    def row(self) -> _core.PythonEnvRow:
        return _core.PythonEnvRow(self.name, option_list(self.settings), self._source)

    def take(self) -> TargetEnv:
        """The first one; its owner closes it."""
        env, self._first = self._first, None
        assert env is not None
        self._made.clear()
        return env

    def close(self) -> None:
        """Closes what was made here; the user's own environment stays open."""
        while self._made:
            self._made.pop().close()

    def _settings(self, env: TargetEnv, gymnasium_id: str, step_limit: int | None) -> dict[str, str]:
        if step_limit is None and env.spec is not None:
            step_limit = env.spec.max_episode_steps
        if step_limit is None:
            raise UserError(f"{self.name} has no limit of steps; give step_limit=")
        return {
            "gymnasium": gymnasium_id,
            "observation_size": str(spaces.flatdim(env.observation_space)),
            "observation_bound": repr(env.observation_bound),
            "actions": "discrete" if env.discrete else "continuous",
            "action_size": str(env.action_size),
            "step_limit": str(int(step_limit)),
            "success": self._success,
            "geometry": env.geometry_text,
        }

    def _new(self, make: Callable[[], AnyEnv]) -> AnyEnv:
        env = make()
        if not isinstance(env, gymnasium.Env):
            raise UserError(f"env made {env!r}, which is no gymnasium.Env")
        self._made.append(env)
        return env

    def _source(self) -> _Player:
        env, self._first = self._first, None
        if env is None:
            made = self._new(self._make or self._copy)
            env = TargetEnv(made, self._geometry, self.name)
        return _Player(env, self._success, self.limit)

    def _copy(self) -> AnyEnv:
        try:
            return copy.deepcopy(self._given)
        except Exception as error:
            if self._given.spec is not None:
                return gymnasium.make(self._given.spec)
            raise UserError(
                f"{self.name} cannot be copied for evaluation ({error}); "
                "give a function that makes one: env=lambda: ..."
            ) from error


def default_geometry(env: EnvLike, agent: str) -> Geometry:
    """What holds where the user says nothing."""
    if isinstance(env, gymnasium.Env) and isinstance(env.unwrapped, MsrlEnv):
        return _INFO
    if _core.agents_over().get(agent):
        raise UserError(
            f"agent '{agent}' sees an episode's matrix, which is made of the geometry: say which "
            "entries of the observation that is (geometry=; {} if there are none)"
        )
    return {}


def recorded_target(
    facts: Mapping[str, Any],
    env: EnvLike | None,
    geometry: Geometry | None,
    env_options: Mapping[str, Any] | None = None,
) -> Target | None:
    """The environment of a run (`env` in run.json), given again where the records do not suffice.

    None if it is msrl's own. UserError if it is another one than before.
    """
    settings: dict[str, str] = facts["settings"]
    if "gymnasium" not in settings:
        if env is not None or geometry is not None:
            raise UserError(f"the run's environment, {facts['id']}, is msrl's own; give no other")
        return None
    options: dict[str, Any] = {}
    if env is None:
        env, options = _recorded_env(settings["gymnasium"])
    target = Target(
        env,
        _recorded_geometry(settings["geometry"]) if geometry is None else geometry,
        env_options=options,
        extra_options=env_options or {},
        name=facts["id"],
        step_limit=int(settings["step_limit"]),
        reward_scale=float(settings["reward_scale"]),
        gamma=float(settings["gamma"]),
        success=settings["success"],
    )
    for key, value in target.settings.items():
        if key in ("gymnasium", "observation_bound", "gamma", "reward_scale"):
            continue  # numbers are written otherwise
        if value != settings[key]:
            target.close()
            raise UserError(
                f"this is not the environment of the run: {key} was {settings[key]}, is {value}"
            )
    return target


def _recorded_env(text: str) -> tuple[str, dict[str, Any]]:
    if not text:
        raise UserError("the run's environment was made by code of its own; give it again: env=")
    name, _, options = text.partition(" ")
    return name, json.loads(options) if options else {}


def _recorded_geometry(text: str) -> Geometry:
    if text.startswith(_FUNCTION):
        name = text.removeprefix(_FUNCTION)
        raise UserError(f"the run's geometry is the function {name}; give it again: geometry=")
    if text == _INFO:
        return _INFO
    slots: dict[str, Any] = json.loads(text)
    return slots
