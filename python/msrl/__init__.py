"""Matrix-Space Reinforcement Learning: trajectory segments as positive semidefinite matrices.

    import msrl
    msrl.describe(x, a, r, lift="full").matrix        # docs/descriptor.md
    gymnasium.make("msrl/Hopper-v5")                  # docs/environments.md, docs/mujoco.md
    msrl.train("Pendulum-v1", agent="sac", steps=10_000)
    msrl.Run("runs/hopper/sac/1").evals               # docs/running.md
"""

from msrl import algebra as _algebra
from msrl import envs as _envs
from msrl import geometry as _geometry
from msrl import runs as _runs
from msrl import stores as _stores
from msrl import targets as _targets
from msrl import training as _training
from msrl._core import InvariantError, RunError, UserError
from msrl._core import version as _version
from msrl.algebra import *
from msrl.envs import *
from msrl.geometry import *
from msrl.runs import *
from msrl.stores import *
from msrl.targets import *
from msrl.training import *

__all__ = [
    "InvariantError",
    "RunError",
    "UserError",
    "__version__",
    *_algebra.__all__,
    *_envs.__all__,
    *_geometry.__all__,
    *_runs.__all__,
    *_stores.__all__,
    *_targets.__all__,
    *_training.__all__,
]

__version__: str = _version()
_envs.register()
