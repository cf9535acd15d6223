"""The algebra against NumPy: every figure is computed a second time from the definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import Segment, random_segment
from numpy.typing import NDArray

import msrl


def psi_of(kind: str, x: NDArray, a: NDArray, r: NDArray) -> NDArray:
    """The lifted steps by the paper's definition, one per row."""
    rows = []
    for t in range(len(r)):
        delta, centre = x[t + 1] - x[t], (x[t + 1] + x[t]) / 2
        full = [centre, delta, np.kron(a[t], centre), np.kron(a[t], delta), [r[t]], [1.0]]
        compact = [x[t], delta, a[t], [r[t]], [1.0]]
        rows.append(np.concatenate(full if kind == "full" else compact))
    return np.array(rows)


def matrix_of(kind: str, segment: Segment) -> NDArray:
    psi = psi_of(kind, *segment)
    return psi.T @ psi


def part(segment: Segment, begin: int, end: int) -> Segment:
    x, a, r = segment
    return x[begin : end + 1], a[begin:end], r[begin:end]


@pytest.mark.parametrize("kind", ["full", "compact"])
def test_describe_is_the_sum_of_outer_products(kind: str, rng: np.random.Generator) -> None:
    segment = random_segment(rng, 50)
    found = msrl.describe(*segment, lift=kind)
    np.testing.assert_allclose(found.matrix, matrix_of(kind, segment), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(msrl.lifted_steps(*segment, kind), psi_of(kind, *segment))
    assert found.horizon_entry == 50
    assert found.is_psd()
    assert np.array_equal(found.matrix, found.matrix.T)
    assert np.array_equal(found.packed, found.matrix.T[np.tril_indices(found.dim)])
    np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(found.matrix), atol=1e-9)
    assert found.norm == pytest.approx(np.linalg.norm(found.matrix))
    assert found.trace == pytest.approx(np.trace(found.matrix))


def test_other_layouts_and_dtypes_give_the_same(rng: np.random.Generator) -> None:
    x, a, r = random_segment(rng, 20)
    expected = msrl.describe(x, a, r)
    assert msrl.describe(np.asfortranarray(x), a[::-1][::-1], r.tolist()) == expected
    narrow = x.astype(np.float32)
    assert msrl.describe(narrow, a, r) == msrl.describe(narrow.astype(np.float64), a, r)
    assert msrl.describe(narrow, a, r) != expected


def test_packed_is_a_view_that_cannot_be_written(rng: np.random.Generator) -> None:
    matrix = msrl.describe(*random_segment(rng, 5))
    packed = matrix.packed
    assert packed.ctypes.data == matrix.packed.ctypes.data
    with pytest.raises(ValueError):
        packed[0] = 1.0
    copy = packed.copy()
    del matrix
    assert np.array_equal(packed, copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, a, r: (x[:, 0], a, r), r"x has shape \(6,\)"),
        (lambda x, a, r: (x[:-1], a, r), "needs 6 states and 5 actions, got 5 and 5"),
        (lambda x, a, r: (x, a[1:], r), "got 6 and 4"),
        (lambda x, a, r: (x, a, r[None]), r"r has shape \(1, 5\)"),
        (lambda x, a, r: (x, a, r + 1j), "r has dtype complex128"),
        (lambda x, a, r: (x, a.astype(str), r), "a has dtype <U"),
        (lambda x, a, r: ([[1.0], [1.0, 2.0]], a, r), "x is no array"),
        (lambda x, a, r: (np.where(np.arange(6)[:, None] == 3, np.nan, x), a, r), "step 2: next x"),
        (lambda x, a, r: (x, a, np.where(np.arange(5) == 4, np.inf, r)), "step 4: reward is inf"),
    ],
)
def test_bad_segments_are_refused(change, message: str, rng: np.random.Generator) -> None:  # type: ignore[no-untyped-def]
    segment = random_segment(rng, 5)
    msrl.describe(*segment)
    with pytest.raises(msrl.UserError, match=message) as refused:
        msrl.describe(*change(*segment))
    assert isinstance(refused.value, ValueError)


def test_lifts(rng: np.random.Generator) -> None:
    lift = msrl.Lift("full", 3, 2)
    assert (lift.kind, lift.d, lift.q, lift.m) == ("full", 3, 2, 2 * 3 + 2 * 6 + 2)
    assert [block.name for block in lift.blocks] == ["c", "delta", "xi_c", "xi_delta", "r", "1"]
    assert len(lift.labels) == lift.m
    assert lift == msrl.Lift("full", 3, 2) != msrl.Lift("full", 2, 3)
    assert lift.block("r").offset == lift.m - 2
    with pytest.raises(msrl.UserError, match="did you mean 'compact'"):
        msrl.Lift("compat", 3, 2)
    with pytest.raises(msrl.UserError, match="the lift needs 4 and 2"):
        msrl.describe(*random_segment(rng, 5), lift=msrl.Lift("compact", 4, 2))
    assert (msrl.aligned_lift().d, msrl.aligned_lift().q) == (8, 10)
    assert [name for name, _ in msrl.aligned_lift().slots] != []


def test_matrices_add_scale_and_refuse_other_lifts(rng: np.random.Generator) -> None:
    first, second = (msrl.describe(*random_segment(rng, 9)) for _ in range(2))
    np.testing.assert_allclose((first + second).matrix, first.matrix + second.matrix)
    np.testing.assert_allclose((first - second).matrix, first.matrix - second.matrix)
    np.testing.assert_allclose((2.0 * first).matrix, 2 * first.matrix)
    assert first.inner(second) == pytest.approx(np.sum(first.matrix * second.matrix))
    assert first.distance(second) == pytest.approx(np.linalg.norm(first.matrix - second.matrix))
    again = msrl.SegmentMatrix.from_dense(first.lift, first.matrix)
    assert again == first != second
    assert msrl.SegmentMatrix.from_packed(first.lift, first.packed) == first
    block = first.block("x", "a")
    np.testing.assert_array_equal(block, first.matrix[:3, 6:8])
    with pytest.raises(msrl.UserError):
        first + msrl.describe(*random_segment(rng, 9), lift="full")
    with pytest.raises(msrl.UserError):
        msrl.SegmentMatrix.from_dense(first.lift, np.triu(first.matrix))


def test_compose(rng: np.random.Generator) -> None:
    whole = random_segment(rng, 12)
    first = msrl.anchor(*part(whole, 0, 5))
    second = msrl.anchor(*part(whole, 5, 12))
    composed = msrl.compose(first, second)
    np.testing.assert_allclose(
        composed.segment_matrix.matrix, matrix_of("compact", whole), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_array_equal(composed.entry, whole[0][0])
    np.testing.assert_array_equal(composed.exit, whole[0][-1])
    with pytest.raises(msrl.UserError, match="cannot compose"):
        msrl.compose(second, first)
    with pytest.raises(msrl.UserError, match="tolerance"):
        msrl.compose(first, second, tolerance=-1.0)


def test_glue(rng: np.random.Generator) -> None:
    whole = random_segment(rng, 12)
    cover = [(0, 6), (4, 9), (5, 8), (8, 12)]

    def matrix(begin: int, end: int) -> msrl.SegmentMatrix:
        return msrl.describe(*part(whole, begin, end))

    expected = matrix_of("compact", whole)
    glued = msrl.glue_intervals(cover, 12, matrix)
    np.testing.assert_allclose(glued.matrix, expected, rtol=1e-11, atol=1e-11)

    family = []
    for size in range(1, len(cover) + 1):
        for members in itertools.combinations(cover, size):
            begin, end = max(m[0] for m in members), min(m[1] for m in members)
            if begin < end:
                family.append((size, matrix(begin, end)))
    assert max(size for size, _ in family) == 3
    np.testing.assert_allclose(msrl.glue_nerve(family).matrix, expected, rtol=1e-11, atol=1e-11)

    assert msrl.plan_interval_gluing(cover, 12) == ([(0, 6), (4, 9), (8, 12)], [(4, 6), (8, 9)])
    with pytest.raises(msrl.UserError):
        msrl.glue_intervals([(0, 5), (6, 12)], 12, matrix)
    with pytest.raises(ZeroDivisionError):
        msrl.glue_intervals(cover, 12, lambda begin, end: 1 / 0)


@pytest.mark.parametrize("kind", ["full", "compact"])
def test_gauge_is_the_change_of_coordinates(kind: str, rng: np.random.Generator) -> None:
    x, a, r = random_segment(rng, 30)
    s, u = rng.normal(size=(3, 3)), rng.normal(size=(2, 2))
    gauge = msrl.Gauge(s, u)
    moved = msrl.apply_gauge(msrl.describe(x, a, r, kind), gauge)
    np.testing.assert_allclose(
        moved.matrix, matrix_of(kind, (x @ s.T, a @ u.T, r)), rtol=1e-9, atol=1e-9
    )
    back = msrl.apply_gauge(moved, gauge.inverse())
    np.testing.assert_allclose(back.matrix, matrix_of(kind, (x, a, r)), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(
        msrl.congruence_invariants(moved),
        msrl.congruence_invariants(back),
        rtol=1e-5,
        atol=1e-5,
    )
    with pytest.raises(msrl.UserError):
        msrl.Gauge(np.zeros((3, 3)), u).inverse()


def test_functionals(rng: np.random.Generator) -> None:
    segment = random_segment(rng, 15)
    matrix = msrl.describe(*segment)
    n = matrix.dim - 1
    a, b, c = 0.3, rng.normal(size=n), rng.normal(size=(n, n))
    c = c + c.T
    functional = msrl.AdditiveFunctional(a, b, c)
    steps = psi_of("compact", *segment)[:, :-1]
    expected = sum(a + b @ psi + psi @ c @ psi for psi in steps)
    assert functional(matrix) == pytest.approx(expected)
    as_matrix = msrl.functional_to_matrix(matrix.lift, functional)
    assert as_matrix.inner(matrix) == pytest.approx(expected)
    again = msrl.matrix_to_functional(as_matrix)
    np.testing.assert_allclose(again.C, c)
    np.testing.assert_allclose(again.b, b)
    assert again.a == pytest.approx(a)
    with pytest.raises(msrl.UserError):
        msrl.AdditiveFunctional(a, b[1:], c)(matrix)


def test_patterns_and_endpoints(rng: np.random.Generator) -> None:
    x, a, r = random_segment(rng, 10)
    ends = msrl.recover_endpoints(msrl.describe(x, a, r))
    assert ends.defined
    np.testing.assert_allclose(ends.x_0, x[0], atol=1e-9)
    np.testing.assert_allclose(ends.x_T, x[-1], atol=1e-9)

    closed = np.concatenate([x, x[:1]])
    around = msrl.describe(closed, np.zeros((11, 2)), np.zeros(11), "full")
    by_name = {pattern.name: pattern for pattern in msrl.patterns(around)}
    assert len(by_name) >= 4
    skew = [pattern for name, pattern in by_name.items() if "cycle" in name]
    assert len(skew) == 1 and skew[0].holds()
    open_path = {p.name: p for p in msrl.patterns(msrl.describe(x, a, r, "full"))}
    assert not open_path[skew[0].name].holds()

    psi = psi_of("full", closed, np.zeros((11, 2)), np.zeros(11))
    centre_delta = psi[:, :3].T @ psi[:, 3:6]
    np.testing.assert_allclose(
        msrl.circulation(around), (centre_delta - centre_delta.T) / 2, atol=1e-12
    )


def test_features(rng: np.random.Generator) -> None:
    segment = random_segment(rng, 10)
    matrix = msrl.describe(*segment)
    features = msrl.MatrixFeatures(matrix.lift, "all+endpoints")
    values = dict(zip(features.names, features(matrix), strict=True))
    assert len(values) == features.size

    mean = 4 * matrix_of("compact", segment)[0, 8] / (10 + 10)  # x[0] with the reward
    assert values["x[0]*r"] == pytest.approx(np.sign(mean) * np.log1p(abs(mean)))
    assert values["log(1+T)"] == pytest.approx(np.log(11) / 7)
    np.testing.assert_allclose(values["xT[2]"], np.clip(3 * segment[0][-1, 2], -12, 12), atol=1e-8)

    direction = msrl.describe(*random_segment(rng, 3))
    weights = rng.normal(size=features.size)
    gradient = features.pullback(matrix, weights)
    step = 1e-5
    ahead, behind = (features(matrix + s * direction) @ weights for s in (step, -step))
    assert gradient.inner(direction) == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)
    with pytest.raises(msrl.UserError, match="derivatives"):
        features.pullback(matrix, weights[1:])
    with pytest.raises(msrl.UserError):
        features(msrl.describe(*segment, lift="full"))


def test_obstruction_certificates() -> None:
    # a ring of four corners, walked in one direction
    nodes = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    tails, heads = [0, 1, 2, 3], [1, 2, 3, 0]
    ring = msrl.graph(nodes, tails, heads, np.eye(4), np.zeros(4))
    lift = msrl.Lift("compact", 2, 4)
    reachable = msrl.ReachableSet(lift, ring, starts=[0], max_horizon=6)
    assert len(reachable.at(3)) == 1

    walk = [0, 1, 2, 3]
    real = msrl.describe(nodes[walk], np.eye(4)[:3], np.zeros(3), lift)
    found = msrl.exact_obstruction(real, reachable)
    assert not found.certified and found.reason == "none"

    jump = msrl.describe(nodes[[0, 2, 3, 0]], np.eye(4)[:3], np.zeros(3), lift)
    found = msrl.exact_obstruction(jump, reachable)
    assert found.certified and found.reason == "positive-distance"
    assert found.score == pytest.approx(np.linalg.norm(jump.matrix - real.matrix))

    half = msrl.exact_obstruction(0.5 * real, reachable)
    assert half.certified and half.reason == "horizon-entry" and half.score == np.inf

    np.testing.assert_allclose(
        ring.describe(lift).matrix,
        matrix_of("compact", (nodes[[0, 1, 2, 3, 0]], np.eye(4), np.zeros(4))),
        atol=1e-12,
    )
    with pytest.raises(msrl.UserError, match="start 4 is no node"):
        msrl.ReachableSet(lift, ring, starts=[4], max_horizon=2)
    with pytest.raises(msrl.UserError, match="the lift needs 3 and 4"):
        msrl.ReachableSet(msrl.Lift("compact", 3, 4), ring, starts=[0], max_horizon=2)
    with pytest.raises(msrl.UserError, match="got 4, 3, 4 and 4"):
        msrl.graph(nodes, tails, heads[1:], np.eye(4), np.zeros(4))
