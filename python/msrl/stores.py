"""What is kept in files: recorded episodes, segment libraries, pretrained artefacts.

    dataset = msrl.read_dataset("data.h5")                      # msrl collect, docs/file-formats.md
    library = msrl.build_library(dataset, family="rooms")       # docs/segment-library.md
    msrl.read_artefact("branch.safetensors").tensors            # msrl pretrain
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msrl import _core
from msrl._arrays import as_numbers
from msrl._core import Artefact, Dataset, Episode, LibrarySegment, Lift, SegmentMatrix, UserError

__all__ = [
    "Artefact",
    "Dataset",
    "Episode",
    "LibrarySegment",
    "SegmentLibrary",
    "build_library",
    "make_episode",
    "read_artefact",
    "read_dataset",
    "read_library",
    "write_artefact",
    "write_dataset",
]

Place = str | os.PathLike[str]


def _new_file(path: Place, force: bool) -> str:
    if not force and Path(path).exists():
        raise UserError(f"{os.fspath(path)} is there already; force=True replaces it")
    return os.fspath(path)


def _floats(name: str, value: ArrayLike, ndim: int) -> NDArray[np.float32]:
    return as_numbers(name, value, ndim).astype(np.float32)


def make_episode(
    env: str,
    observations: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    geometry: ArrayLike,
    *,
    terminated: bool = False,
    truncated: bool = False,
    reward_scale: float = 1.0,
    seed: int = 0,
    instance: str = "",
    values: Mapping[str, ArrayLike] | None = None,
    facts: Mapping[str, float] | None = None,
) -> Episode:
    """An episode of T steps: T + 1 observations and geometries, T actions and rewards.

    Actions are indices (T whole numbers) or numbers in [-1, 1] (T rows). A Dataset checks it.
    """
    indices = np.asarray(actions)
    discrete = indices.ndim == 1 and indices.dtype.kind in "iu"
    return Episode(
        env=env,
        observations=_floats("observations", observations, 2),
        actions=_floats("actions", indices[:, None] if discrete else indices, 2),
        rewards=as_numbers("rewards", rewards, 1),
        geometry=_floats("geometry", geometry, 2),
        discrete=discrete,
        reward_scale=float(reward_scale),
        terminated=terminated,
        truncated=truncated,
        seed=seed,
        instance=instance,
        values={name: _floats(name, column, 1) for name, column in (values or {}).items()},
        facts=dict(facts or {}),
    )


def read_dataset(path: Place) -> Dataset:
    """The episodes in a file of `msrl collect`; UserError unless it is whole and valid."""
    return _core.read_dataset(os.fspath(path))


def write_dataset(path: Place, dataset: Dataset, force: bool = False) -> None:
    """Writes HDF5 in the layout of Minari's datasets; a file that is there stays, without `force`."""
    _core.write_dataset(_new_file(path, force), dataset)


class SegmentLibrary:
    """Segments of experience that can be asked: what followed on a state like this one?"""

    def __init__(self, native: _core.NativeLibrary) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    @property
    def family(self) -> str:
        """What the segments are from."""
        return self._native.family

    @property
    def lift(self) -> Lift:
        """That of the matrices."""
        return self._native.lift

    def query(
        self,
        context: ArrayLike,
        k: int = 8,
        *,
        radius: float = np.inf,
        head_action: ArrayLike | None = None,
        action_radius: float = 0.0,
        exactly: bool = False,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Slots and distances of the nearest segments by their context, nearest first.

        `head_action`: the first action must be within `action_radius` of it; equal, if discrete.
        `exactly`: look at all, also in a library so large that it has an index.
        """
        head = None if head_action is None else _floats("head_action", np.atleast_1d(head_action), 1)
        place = _floats("context", context, 1)
        return self._native.query(place, k, radius, head, action_radius, exactly)

    def segment(self, slot: int) -> LibrarySegment:
        """All about one segment but its matrix."""
        return self._native.segment(slot)

    def matrix(self, slot: int) -> SegmentMatrix:
        """What it adds to a matrix."""
        return self._native.matrix(slot)

    def save(self, path: Place, force: bool = False) -> None:
        """Writes it for `msrl library` and `msrl train --library`."""
        self._native.save(_new_file(path, force))

    def __repr__(self) -> str:
        return f"SegmentLibrary({len(self)} segments of {self.family!r})"


def read_library(place: Place) -> SegmentLibrary:
    """The library in a file, or that of a run whose agent keeps one."""
    return SegmentLibrary(_core.read_library(os.fspath(place)))


def build_library(
    dataset: Dataset,
    family: str,
    *,
    length: int = 1,
    stride: int = 1,
    capacity: int = 5000,
    policy: str = "fifo",
    lift: str = "compact",
    seed: int = 0,
) -> SegmentLibrary:
    """Cuts the episodes into segments of `length` steps, one every `stride`."""
    return SegmentLibrary(
        _core.build_library(
            dataset=dataset,
            family=family,
            length=length,
            stride=stride,
            capacity=capacity,
            policy=policy,
            lift=lift,
            seed=seed,
        )
    )


def read_artefact(path: Place) -> Artefact:
    """What `msrl pretrain --out` wrote."""
    return _core.read_artefact(os.fspath(path))


def write_artefact(
    path: Place,
    kind: str,
    tensors: Mapping[str, NDArray[Any]],
    *,
    lift: Lift | None = None,
    shape: Mapping[str, str] | None = None,
    made: Mapping[str, str] | None = None,
    force: bool = False,
) -> None:
    """Writes tensors (float32, float64, int64 or uint8) with what they are and where they come from.

    `shape` and `made` are texts; what an agent wants of a kind is in docs/file-formats.md.
    """
    arrays = {}
    for name, tensor in tensors.items():
        arrays[name] = np.ascontiguousarray(tensor)
        if arrays[name].dtype not in (np.float32, np.float64, np.int64, np.uint8):
            raise UserError(f"tensor {name} has type {arrays[name].dtype}")
    _core.write_artefact(
        _new_file(path, force), kind, arrays, lift, dict(shape or {}), dict(made or {})
    )
