"""Which entries of an observation are the aligned geometry: position, goal, motion, posture."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msrl._core import UserError

__all__ = ["GEOMETRY_BOUND", "GEOMETRY_SLOTS", "SlotMap"]

#: The slots of each name (docs/environments.md says what they mean).
GEOMETRY_SLOTS: dict[str, tuple[int, ...]] = {
    "position": (0, 1),
    "goal": (2, 3),
    "motion": (4, 5),
    "posture": (6,),
    "contact": (7,),
}
#: No slot exceeds it; what would is cut off.
GEOMETRY_BOUND = 4.0
_SIZE = 8


class SlotMap:
    """The eight slots as a function of the observation, given as data.

    A name of GEOMETRY_SLOTS has an entry of the observation, or a list with one per slot, or a
    table: `entries` and, optionally, the `unit` that the numbers are divided by, so that a
    typical one is about 1. The goal is seen from the position: `{"at": [0, 1]}` is a place that
    stays, `{"place": [4, 5]}` entries that tell a place, and plain `entries` the way to it. Slots
    that nobody names are 0.

        SlotMap({"position": [1, 0], "goal": {"at": [0, 1]},
                 "motion": {"entries": [2], "unit": 8}, "posture": 1}, observation_size=3)
    """

    def __init__(self, slots: Mapping[str, Any], observation_size: int) -> None:
        if not isinstance(slots, Mapping):
            raise UserError(f"geometry is {slots!r}; it should be a table or a function")
        for name in slots:
            if name not in GEOMETRY_SLOTS:
                known = ", ".join(GEOMETRY_SLOTS)
                raise UserError(f"geometry has no slot {name!r}; there are {known}")
        self._size = observation_size
        self._weights = np.zeros((_SIZE, observation_size))
        self._offsets = np.zeros(_SIZE)
        self._places: dict[int, int] = {}  # entry of the position, by axis
        self._position_unit = 1.0
        for name in GEOMETRY_SLOTS:  # the goal needs the position
            if name in slots:
                self._add(name, slots[name])
        try:
            self._text = json.dumps(slots, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UserError(f"geometry cannot be written down: {error}") from None

    def __call__(self, observation: NDArray[np.float64]) -> NDArray[np.float64]:
        """The slots at a flat observation."""
        slots: NDArray[np.float64] = self._weights @ observation + self._offsets
        return slots

    def __str__(self) -> str:
        """As JSON, the same for equal maps."""
        return self._text

    def _add(self, name: str, value: Any) -> None:
        table = value if isinstance(value, Mapping) else {"entries": value}
        kinds = ("entries", "at", "place") if name == "goal" else ("entries",)
        given = [kind for kind in kinds if kind in table]
        unknown = [key for key in table if key not in (*kinds, "unit")]
        if len(given) != 1 or unknown:
            raise UserError(f"geometry: {name} needs one of {', '.join(kinds)}, and perhaps a unit")
        kind = given[0]
        unit = self._number(name, table.get("unit", 1.0 if kind == "entries" else self._position_unit))
        if unit == 0.0:
            raise UserError(f"geometry: the unit of {name} is 0")
        if name == "position":
            self._position_unit = unit
        listed = table[kind]
        values = list(listed) if isinstance(listed, Sequence) else [listed]
        slots = GEOMETRY_SLOTS[name]
        if not 1 <= len(values) <= len(slots):
            raise UserError(f"geometry: {name} has {len(slots)} slots at most, got {len(values)}")
        for axis, (slot, item) in enumerate(zip(slots, values, strict=False)):
            if item is None:
                continue
            if kind == "at":
                self._offsets[slot] = self._number(name, item) / unit
            else:
                self._weights[slot, self._entry(name, item)] += 1.0 / unit
            if kind != "entries":
                if axis not in self._places:
                    raise UserError(f"geometry: goal[{axis}] is a place, but there is no position")
                self._weights[slot, self._places[axis]] -= 1.0 / unit
            if name == "position":
                self._places[axis] = self._entry(name, item)

    def _entry(self, name: str, item: Any) -> int:
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < self._size:
            last = self._size - 1
            raise UserError(f"geometry: {name} names entry {item!r}; observations have 0 to {last}")
        return item

    @staticmethod
    def _number(name: str, item: Any) -> float:
        if isinstance(item, bool) or not isinstance(item, (int, float)) or not math.isfinite(item):
            raise UserError(f"geometry: {item!r} of {name} is no finite number")
        return float(item)
