"""Matrices of trajectory segments: describe, compose, glue, change coordinates, certify.

A segment of T steps is `x` with T + 1 rows (one state per row), `a` with T rows (one action per
row) and `r` with T rewards. float64 arrays in row-major order, NumPy's default, are read where they
lie; others are converted first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msrl import _core
from msrl._arrays import as_numbers
from msrl._core import (
    AdditiveFunctional,
    AnchoredMatrix,
    Endpoints,
    Gauge,
    Lift,
    LiftBlock,
    MatrixFeatures,
    Multigraph,
    Obstruction,
    PatternResidual,
    ReachableSet,
    SegmentMatrix,
    aligned_lift,
    apply_gauge,
    circulation,
    compose,
    congruence_invariants,
    exact_obstruction,
    functional_to_matrix,
    glue_intervals,
    glue_nerve,
    matrix_to_functional,
    patterns,
    plan_interval_gluing,
    recover_endpoints,
)

__all__ = [
    "FEATURE_SETS",
    "LIFT_KINDS",
    "AdditiveFunctional",
    "AnchoredMatrix",
    "Endpoints",
    "Gauge",
    "Lift",
    "LiftBlock",
    "MatrixFeatures",
    "Multigraph",
    "Obstruction",
    "PatternResidual",
    "ReachableSet",
    "SegmentMatrix",
    "aligned_lift",
    "anchor",
    "apply_gauge",
    "circulation",
    "compose",
    "congruence_invariants",
    "describe",
    "exact_obstruction",
    "functional_to_matrix",
    "glue_intervals",
    "glue_nerve",
    "graph",
    "lifted_steps",
    "matrix_to_functional",
    "patterns",
    "plan_interval_gluing",
    "recover_endpoints",
]

LIFT_KINDS: tuple[str, ...] = tuple(_core.lift_kinds())
FEATURE_SETS: tuple[str, ...] = tuple(_core.feature_sets())

_Segment = tuple[Lift, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _segment(x: ArrayLike, a: ArrayLike, r: ArrayLike, lift: str | Lift) -> _Segment:
    states, actions = as_numbers("x", x, 2), as_numbers("a", a, 2)
    if isinstance(lift, str):
        lift = Lift(lift, states.shape[1], actions.shape[1])
    return lift, states, actions, as_numbers("r", r, 1)


def describe(
    x: ArrayLike, a: ArrayLike, r: ArrayLike, lift: str | Lift = "compact"
) -> SegmentMatrix:
    """The matrix of a segment: the sum over its steps of psi psi^T.

    `lift` is one of LIFT_KINDS (the dimensions are then those of `x` and `a`) or a Lift. The result
    has the m x m array as `.matrix`. UserError (a ValueError) on shapes that do not fit and on
    numbers that are not finite, with the step and the channel.
    """
    return _core.describe(*_segment(x, a, r, lift))


def lifted_steps(
    x: ArrayLike, a: ArrayLike, r: ArrayLike, lift: str | Lift = "compact"
) -> NDArray[np.float64]:
    """The lifted steps psi of a segment, one per row: T x m."""
    return _core.lifted_steps(*_segment(x, a, r, lift))


def anchor(
    x: ArrayLike, a: ArrayLike, r: ArrayLike, lift: str | Lift = "compact"
) -> AnchoredMatrix:
    """The matrix of a segment with its first and last state, for `compose`."""
    arguments = _segment(x, a, r, lift)
    matrix = _core.describe(*arguments)
    return AnchoredMatrix(matrix, arguments[1][0], arguments[1][-1])


def graph(
    nodes: ArrayLike,
    tails: Sequence[int],
    heads: Sequence[int],
    actions: ArrayLike,
    rewards: ArrayLike,
) -> Multigraph:
    """A graph with a state per row of `nodes` and an edge from tails[e] to heads[e] for every e."""
    return Multigraph(
        as_numbers("nodes", nodes, 2),
        [int(node) for node in tails],
        [int(node) for node in heads],
        as_numbers("actions", actions, 2),
        as_numbers("rewards", rewards, 1),
    )
