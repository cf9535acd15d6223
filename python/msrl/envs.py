"""The environments of msrl through Gymnasium.

Importing msrl registers all of them: `gymnasium.make("msrl/Hopper-v5")`, and
`gymnasium.make_vec("msrl/Hopper-v5", num_envs=16)` for many at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from msrl import _core
from msrl._core import EnvSpec, UserError

__all__ = ["MsrlEnv", "MsrlVectorEnv", "environments", "gymnasium_id"]

# frames per second of tasks whose steps are no time
_UNTIMED_RATE = 10
_ENTRY_POINT = "msrl.envs:MsrlEnv"


def gymnasium_id(env: str) -> str:
    """Gymnasium's id of an environment: 'hopper-velocity' is 'msrl/HopperVelocity-v5'.

    MuJoCo tasks, which follow the rules of Gymnasium's v5, have version 5, all others 0.
    """
    words = "".join(word[:1].upper() + word[1:] for word in env.split("-"))
    version = 5 if "version" in _core.env_options()[env] else 0
    return f"msrl/{words}-v{version}"


def environments() -> dict[str, str]:
    """Gymnasium's id of every environment, with that of the command line."""
    return {gymnasium_id(env): env for env in _core.env_options()}


def register() -> None:
    """Makes all environments known to Gymnasium; those that are known already stay."""
    for env_id, env in environments().items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point=_ENTRY_POINT,
                vector_entry_point="msrl.envs:MsrlVectorEnv",
                kwargs={"env": env},
            )


def _option(key: str, value: Any) -> str:
    return f"{key}={str(value).lower() if isinstance(value, bool) else value}"


def option_list(options: Mapping[str, Any]) -> list[str]:
    """Options as the C++ library takes them: "key=value"."""
    return [_option(key, value) for key, value in options.items()]


def _spaces(spec: EnvSpec) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    bound = spec.observation_bound
    observation = gymnasium.spaces.Box(-bound, bound, (spec.observation_size,), np.float64)
    if spec.discrete:
        return observation, gymnasium.spaces.Discrete(spec.action_size)
    return observation, gymnasium.spaces.Box(-1.0, 1.0, (spec.action_size,), np.float32)


def _steps_per_second(spec: EnvSpec) -> int:
    return _UNTIMED_RATE if spec.dt >= 1.0 else round(1.0 / spec.dt)


def _row(action: ArrayLike) -> NDArray[np.float64]:
    return np.ascontiguousarray(action, dtype=np.float64)


class MsrlEnv(gymnasium.Env[NDArray[np.float64], Any]):
    """One environment.

    `info` has the aligned `geometry` (8 numbers, what matrices are made of) and, where the task has
    one, whether it is solved (`success`). A simulation that failed has terminated; `info` then says
    why (`fault`). `options` are those of the command line (`msrl envs ID`).
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": _UNTIMED_RATE}

    def __init__(
        self,
        env: str,
        render_mode: str | None = None,
        width: int = 480,
        height: int = 480,
        **options: Any,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise UserError(f"render_mode is {render_mode!r}; there is only 'rgb_array'")
        self.native = _core.Env(env, option_list(options))
        self.native_spec = self.native.spec
        self.observation_space, self.action_space = _spaces(self.native_spec)
        self.metadata = {**self.metadata, "render_fps": _steps_per_second(self.native_spec)}
        self.render_mode = render_mode
        self._size = (width, height)
        self._seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Begins the episode that `seed` determines, as `msrl play --seed` does.

        Without a seed the next episode of the last seed's sequence; of a random one at first.
        """
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
        self._seeded = True
        return self.native.reset(seed), self._info()

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        if self.native_spec.discrete:
            result = self.native.step_discrete(int(action))
        else:
            result = self.native.step_continuous(_row(action))
        return *result, self._info()

    def render(self) -> NDArray[np.uint8] | None:
        """The present state as height x width x 3, by MuJoCo's renderer where there is OpenGL."""
        if self.render_mode is None:
            return None
        return self.native.render(*self._size)

    def embed_action(self, action: Any) -> NDArray[np.float64]:
        """The action as matrices see it: 10 numbers."""
        if self.native_spec.discrete:
            return self.native_spec.embed_action(int(action))
        return self.native_spec.embed_action(_row(action))

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"geometry": self.native.geometry}
        if self.native_spec.has_success:
            info["success"] = self.native.success
        if fault := self.native.fault:
            info["fault"] = fault
        return info


class MsrlVectorEnv(gymnasium.vector.VectorEnv[NDArray[np.float64], Any, Any]):
    """Many environments, stepped at once by `threads` threads of the C++ library.

    An episode that ends begins again in the same step (AutoresetMode.SAME_STEP): observations and
    `info` are those of the new episode, `info["final_obs"]` and `info["final_info"]` those of the
    end. Environment i plays the same episodes as a single one with its seed; what happens does not
    depend on the number of threads.
    """

    def __init__(
        self,
        env: str,
        num_envs: int = 1,
        threads: int = 1,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if render_mode is not None:
            raise UserError("a vector of environments has no pictures; render a single one")
        self.native = _core.BatchEnv(env, option_list(options), num_envs, threads)
        self.native_spec = self.native.spec
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _spaces(self.native_spec)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = None
        self._seeded = False

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Begins an episode everywhere: of seed + i, or of seed[i], or the next one without."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        if seed is None and not self._seeded:
            seed = [int(s) for s in self.np_random.integers(2**63, size=self.num_envs)]
        self._seeded = True
        if seed is None:
            seeds: list[int | None] = [None] * self.num_envs
        elif isinstance(seed, int):
            seeds = [seed + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        return self.native.reset(seeds)

    def step(
        self, actions: Any
    ) -> tuple[
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
        dict[str, Any],
    ]:
        return self.native.step(actions)
