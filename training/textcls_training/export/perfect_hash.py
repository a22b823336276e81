"""The perfect hash of a saved model, which finds the row of a feature.

Shapes: N hashes of a kind, R rows, M hashes with the reserved ones, B blocks, P blocks that wait for a place, S hashes
of such a block.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.model import features
from textcls.model.features import Uint32
from textcls_training.data.arrays import Int64

FINGERPRINT: Final = 0xFF000000
# Hashes that share a block are moved together until each has a slot of its own; see `PerfectHash`.
BLOCK_HASHES, SLOTS_PER_ROW = 4, 1.6
SPREAD: Final = 0x9E3779B1


@dataclass(frozen=True, slots=True)
class PerfectHash:
    """Which row a hash has: hash and displace (Belazzougui, Botelho and Dietzfelbinger 2009), with fingerprints.

    The low bits of a hash are its block, and (hash XOR displacement of the block) modulo the number of slots is its
    slot. No two of the features that are here share one. A hash that is not here may meet a slot that is taken, and is
    told from its owner by the fingerprint, the high bits.

    Behind its R rows a table has two more: R, that of `features.PADDING`, and R + 1, that of absent features.

    Attributes:
        displacement: the displacement of each block, in units of `SPREAD`; a power of two of them.
        slots: number of slots.
        slot_R: the slot of each row.
        kinds: the number of rows of each kind, which are stored one after another; slots rise within a kind.
        fingerprint_R: the high bits of each row's hash.
        padding_slot: the slot of the hash that leads to row R.
    """

    displacement: NDArray[np.uint8]
    slots: int
    slot_R: Int64
    kinds: tuple[int, ...]
    fingerprint_R: NDArray[np.uint8]
    padding_slot: int

    @property
    def absent(self) -> int:
        """The row of a hash that is absent."""
        return len(self.slot_R) + 1

    def rows(self, hashes: Uint32) -> Int64:
        """Return the row of each hash."""
        row_of_slot = np.full(self.slots, self.absent)
        row_of_slot[self.slot_R] = np.arange(len(self.slot_R))
        row_of_slot[self.padding_slot] = len(self.slot_R)
        fingerprint = np.append(self.fingerprint_R, np.array([features.end_hash() >> 24, 0], np.uint8))
        block = hashes & np.uint32(len(self.displacement) - 1)
        row = row_of_slot[_slot(hashes, self.displacement[block], self.slots)]
        return np.where(fingerprint[row] == hashes >> np.uint32(24), row, self.absent)

    @classmethod
    def of(cls, *kinds: Uint32) -> tuple["PerfectHash", list[Int64]]:
        """Return a perfect hash of some kinds of distinct features, and the index within its kind of each row."""
        # No feature may stand where the text graph looks for what is not there: behind a text and behind a cut.
        end = features.end_hash()
        around = features.bigram_hashes(np.array([features.START, end], np.uint32), np.array([end, end], np.uint32))
        reserved = np.unique(np.array([end, *around, 0], np.uint32))
        number = [np.flatnonzero(~np.isin(hash_N, reserved)) for hash_N in kinds]
        hash_M = np.concatenate([*(hash_N[which] for hash_N, which in zip(kinds, number, strict=True)), reserved])
        slots = int(SLOTS_PER_ROW * len(hash_M)) + 8 | 1
        while (displacement := _displace(hash_M, slots)) is None:
            slots = int(1.1 * slots) | 1
        slot_M = _slot(hash_M, displacement[hash_M & np.uint32(len(displacement) - 1)], slots)
        ends = np.cumsum([len(which) for which in number])
        order = [np.argsort(part) for part in np.split(slot_M, ends)[:-1]]
        row = np.concatenate([part + end - len(part) for part, end in zip(order, ends, strict=True)])
        found = cls(
            displacement=displacement,
            slots=slots,
            slot_R=slot_M[row],
            kinds=tuple(len(part) for part in order),
            fingerprint_R=(hash_M[row] >> np.uint32(24)).astype(np.uint8),
            padding_slot=int(slot_M[ends[-1] :][reserved == end][0]),
        )
        return found, [which[part] for which, part in zip(number, order, strict=True)]

    @staticmethod
    def size(rows: Int64, kinds: int = 2) -> Int64:
        """Return approximately how many bytes perfect hashes of this many rows take; each kind has a bit per slot."""
        return rows + _blocks(rows) + (SLOTS_PER_ROW / 8 * max(2, kinds) * rows).astype(np.int64)


def _blocks(rows: Int64) -> Int64:
    return (2 ** np.ceil(np.log2(np.maximum(rows, BLOCK_HASHES) / BLOCK_HASHES))).astype(np.int64)


def _slot(hashes: Uint32, displacement: NDArray[np.uint8], slots: int) -> Int64:
    moved = hashes ^ displacement * np.uint32(SPREAD)
    # As in the graph: signed 32 bits, and a non-negative remainder.
    return moved.view(np.int32).astype(np.int64) % slots


def _displace(hash_M: Uint32, slots: int) -> NDArray[np.uint8] | None:
    """Return a displacement for each block with which no two hashes share a slot; None if none was found.

    The largest blocks are placed first. Of those of one size all try the same round; where two want one slot, one of
    them waits for the next round.
    """
    blocks = int(_blocks(np.array(len(hash_M))))
    block_M = (hash_M & np.uint32(blocks - 1)).astype(np.int64)
    by_block = np.argsort(block_M, kind="stable")
    size_B = np.bincount(block_M, minlength=blocks)
    first_B = np.cumsum(size_B) - size_B
    displacement_B = np.zeros(blocks, np.uint8)
    taken, owner = np.zeros(slots, np.bool_), np.zeros(slots, np.int64)
    for size in range(int(size_B.max(initial=0)), 0, -1):
        waiting = np.flatnonzero(size_B == size)
        for attempt in range(256):
            if not len(waiting):
                break
            hash_PS = hash_M[by_block[first_B[waiting][:, None] + np.arange(size)]]
            # Blocks move differently, so that they do not crowd the same places.
            displacement_P = (attempt + waiting).astype(np.uint8)
            slot_PS = _slot(hash_PS, displacement_P[:, None], slots)
            sorted_PS = np.sort(slot_PS, 1)
            good = ~taken[slot_PS].any(1) & (sorted_PS[:, 1:] != sorted_PS[:, :-1]).all(1)
            owner[slot_PS[good]] = waiting[good][:, None]
            good &= (owner[slot_PS] == waiting[:, None]).all(1)
            taken[slot_PS[good]] = True
            displacement_B[waiting[good]] = displacement_P[good]
            waiting = waiting[~good]
        if len(waiting):
            return None
    return displacement_B
