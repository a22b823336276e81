"""The tables of a saved model: what each word, bigram and n-gram says, in few bytes, within a budget.

A word that training has seen has one row, which already sums up everything that it owns in every view: its word row
and, in the view "pieces", all its n-grams. Only words that training has not seen are put together from n-grams when an
answer is asked for. Where a view is `foldable`, a row holds what it says of each label, and its score; else its vector.

Shapes: R rows, W rows of words, B texts, T tokens, G groups of columns (of a folded view one a seed, else one a view),
Y columns of a group: C values and a score if folded, else D of the vector. X = Y + 1: the columns and the energy.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from textcls import features
from textcls.features import FeatureConfig, Uint32
from textcls_training import ops
from textcls_training.choices import Size
from textcls_training.encoding import Corpus, bigram_hashes
from textcls_training.views import Fitted, View

Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
Float32 = NDArray[np.float32]

FINGERPRINT: Final = 0xFF000000
# Hashes that share a block are moved together until each has a slot of its own; see `Directory`.
BLOCK_HASHES, SLOTS_PER_ROW = 4, 1.6
SPREAD: Final = 0x9E3779B1
# What stands in a file beside the tables: the token rule, the nodes, the metadata.
OVERHEAD_BYTES: Final = 40_000
# What a loaded table holds; half of what 32 bits take, and exact to 1 in 2,000, where a step is 1 in 254 or in 14.
HELD: type[np.floating] = np.float16
# Of an n-gram beside a word that moves the logits as much: only words that training has not seen need it.
NGRAM_WORTH: Final = 0.3
# The score of padding: it takes no part in a softmax, and 16 bits can hold it.
NO_SCORE: Final = -3e4


def budget(size: Size, labels: int) -> int | None:
    """Return the most bytes of a saved model, None for no bound; a row of many labels is longer."""
    more = 100_000 * max(0, labels - 10)
    return {"tiny": 300_000, "small": 1_000_000, "default": 3_000_000 + more, "full": None}[size]


@dataclass(frozen=True, slots=True)
class Directory:
    """Which row a hash has: hash and displace (Belazzougui, Botelho and Dietzfelbinger 2009), with fingerprints.

    The low bits of a hash are its block, and (hash XOR displacement of the block) modulo the number of slots is its
    slot. No two of the features that are here share one. A hash that is not here may meet a slot that is taken, and is
    told from its owner by the fingerprint, the high bits.

    Behind its R rows a table has two more: R, that of `features.PADDING`, and R + 1, nothing.

    Attributes:
        displacement: of each block, in units of `SPREAD`; as many as a power of two.
        slots: number of slots.
        slot_R: the slot of each row.
        kinds: how many rows there are of each kind, which stand one behind another; slots rise within a kind.
        fingerprint_R: the high bits of each row's hash.
        padding_slot: of the hash that leads to row R.
    """

    displacement: NDArray[np.uint8]
    slots: int
    slot_R: Int64
    kinds: tuple[int, ...]
    fingerprint_R: NDArray[np.uint8]
    padding_slot: int

    @property
    def nothing(self) -> int:
        """The row of a hash that is not here."""
        return len(self.slot_R) + 1

    def rows(self, hashes: Uint32) -> Int64:
        """Return the row of each hash."""
        row_of_slot = np.full(self.slots, self.nothing)
        row_of_slot[self.slot_R] = np.arange(len(self.slot_R))
        row_of_slot[self.padding_slot] = len(self.slot_R)
        fingerprint = np.append(self.fingerprint_R, np.array([features.end_hash() >> 24, 0], np.uint8))
        block = hashes & np.uint32(len(self.displacement) - 1)
        row = row_of_slot[_slot(hashes, self.displacement[block], self.slots)]
        return np.where(fingerprint[row] == hashes >> np.uint32(24), row, self.nothing)

    @classmethod
    def of(cls, *kinds: Uint32) -> tuple["Directory", list[Int64]]:
        """Return a directory of hashes of some kinds, all different, and which of its kind each of the rows is."""
        # Nothing may stand where the front end looks for what is not there: behind a text and behind a cut.
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
        directory = cls(
            displacement=displacement,
            slots=slots,
            slot_R=slot_M[row],
            kinds=tuple(len(part) for part in order),
            fingerprint_R=(hash_M[row] >> np.uint32(24)).astype(np.uint8),
            padding_slot=int(slot_M[ends[-1] :][reserved == end][0]),
        )
        return directory, [which[part] for which, part in zip(number, order, strict=True)]

    @staticmethod
    def size(rows: Int64) -> Int64:
        """About how many bytes directories of so many rows take."""
        return rows + _blocks(rows) + (SLOTS_PER_ROW / 4 * rows).astype(np.int64)


def _blocks(rows: Int64) -> Int64:
    return (2 ** np.ceil(np.log2(np.maximum(rows, BLOCK_HASHES) / BLOCK_HASHES))).astype(np.int64)


def _slot(hashes: Uint32, displacement: NDArray[np.uint8], slots: int) -> Int64:
    moved = hashes ^ displacement * np.uint32(SPREAD)
    # As the graph reads it: 32 bits with a sign, and a remainder that has none.
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
            # Not all blocks move alike, so that they do not crowd the same places.
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


@dataclass(frozen=True, slots=True)
class Rounded:
    """Rows in 8 or 4 bits a column, with a scale for each group.

    Attributes:
        bits: of a column. The words, which are sums of many rows, have 8; bigrams and n-grams 4.
        step_RGY: columns, in steps of the scale.
        scale_RG: as a share of `largest`, so that no row falls below what 16 bits can tell from zero.
        largest: the largest scale.
        energy_R: the sum of the squared weights.
    """

    bits: Literal[4, 8]
    step_RGY: NDArray[np.int8]
    scale_RG: NDArray[np.float16]
    largest: float
    energy_R: NDArray[np.float16]

    @classmethod
    def of(cls, column_RGY: Float32, energy_R: Float32, bits: Literal[4, 8]) -> "Rounded":
        """Round rows."""
        step_RG = np.maximum(np.abs(column_RGY).max(2, initial=0), ops.TINY) / (2 ** (bits - 1) - 1)
        step_RGY = np.rint(column_RGY / step_RG[..., None]).astype(np.int8)
        largest = float(step_RG.max(initial=ops.TINY))
        # No energy means not known, so none may vanish.
        energy_R = np.maximum(energy_R, np.finfo(np.float16).smallest_normal)
        return cls(bits, step_RGY, (step_RG / largest).astype(np.float16), largest, energy_R.astype(np.float16))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, groups, and columns with the energy."""
        rows, groups, columns = self.step_RGY.shape
        return rows, groups, columns + 1

    def rows(self) -> Float32:
        """Return the columns and the energy [R, G, X], exact to what a loaded table holds."""
        scale_RG1 = (self.scale_RG.astype(np.float32) * np.float32(self.largest))[..., None]
        column_RGY = self.step_RGY.astype(np.float32) * scale_RG1
        energy_RG1 = np.broadcast_to(self.energy_R[:, None, None], scale_RG1.shape)
        return np.concatenate([column_RGY.astype(HELD), energy_RG1], 2).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The tables of a saved model.

    Attributes:
        features: what a token owns.
        folded: whether columns are values and a score, or else those of a vector.
        rows: directory of words, and behind them bigrams.
        words: what words say in the first view.
        bigrams: what bigrams say in it.
        pieces: what words say in the second view, their n-grams included; None without n-grams.
        ngrams: directory of n-grams; None without.
        ngram_rows: what n-grams say in the second view; None without.
    """

    features: FeatureConfig
    folded: bool
    rows: Directory
    words: Rounded
    bigrams: Rounded
    pieces: Rounded | None = None
    ngrams: Directory | None = None
    ngram_rows: Rounded | None = None

    def marks(self) -> Float32:
        """Return the two rows behind those of a directory, padding and nothing [2, G, X] of one view."""
        mark_2GX = np.zeros((2, *self.words.shape[1:]), np.float32)
        if self.folded:
            mark_2GX[0, :, -2] = NO_SCORE
        mark_2GX[0, :, -1] = 1
        return mark_2GX

    def table(self) -> Float32:
        """Return what words and bigrams say in all views [R + 2, G, X]."""
        bigram_RGX = self.bigrams.rows()
        views = [np.concatenate([self.words.rows(), bigram_RGX, self.marks()])]
        if self.pieces is not None:
            views.append(np.concatenate([self.pieces.rows(), np.zeros_like(bigram_RGX), self.marks()]))
        return np.concatenate(views, 1)

    def read(self, corpus: Corpus) -> tuple[Bools, Float32]:
        """Return padding [B, T] and token sums [B, T, G, X] as the front end of a saved model does."""
        length = np.diff(corpus.start)
        padding_BT = np.arange(max(1, length.max(initial=0))) >= length[:, None]
        table_RGX = self.table()
        token_BTGX = np.broadcast_to(table_RGX[-2], (*padding_BT.shape, *table_RGX.shape[1:])).copy()
        token_BTGX[~padding_BT] = self._sums(corpus, table_RGX)
        return padding_BT, token_BTGX

    def _sums(self, corpus: Corpus, table_RGX: Float32) -> Float32:
        word = features.word_hashes(corpus.types)
        sum_of_type = table_RGX[self.rows.rows(word)]
        if self.ngrams is not None and self.ngram_rows is not None:
            unknown = np.flatnonzero(sum_of_type[:, -1, -1] == 0)
            hashes, exist = features.ngram_hashes([corpus.types[i] for i in unknown], self.features)
            ngram_RGX = np.concatenate([self.ngram_rows.rows(), self.marks()])
            row = np.where(exist, self.ngrams.rows(hashes), self.ngrams.nothing)
            sum_of_type[unknown, -ngram_RGX.shape[1] :] += ngram_RGX[row].sum(1)
        token_NGX = sum_of_type[corpus.token]
        if self.features.bigrams:
            # A text has one pair more than tokens, so the pairs of the texts before it shift those of a token.
            pair = np.arange(len(corpus.token)) + np.repeat(np.arange(len(corpus)), np.diff(corpus.start))
            pair_row = self.rows.rows(bigram_hashes(corpus, word))
            token_NGX += table_RGX[pair_row[pair]] + table_RGX[pair_row[pair + 1]]
        return token_NGX


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Features of one kind, any of which may be left out.

    Attributes:
        hash_R: their hashes, all different.
        columns: what each says in each of the views that it is part of [R, G, Y].
        energies: the sums of squared weights there [R].
        worth_R: how much answers would change without it, in no particular unit.
        bits: of a column.
    """

    hash_R: Uint32
    columns: list[Float32]
    energies: list[Float32]
    worth_R: Float32
    bits: Literal[4, 8]

    def take(self, which: Int64 | Bools) -> "_Candidates":
        """Return the features `which`."""
        return _Candidates(
            self.hash_R[which],
            [column_RGY[which] for column_RGY in self.columns],
            [energy_R[which] for energy_R in self.energies],
            self.worth_R[which],
            self.bits,
        )

    @property
    def bytes_each(self) -> int:
        """Bytes of a row: in each view its columns, the scale of each group, and the energy."""
        return sum(
            shape[1] * (-(-shape[2] * self.bits // 8) + 2) + 2 for shape in (column.shape for column in self.columns)
        )

    def rounded(self, view: int, which: Int64) -> Rounded:
        """Return what the features `which` say in a view."""
        return Rounded.of(self.columns[view][which], self.energies[view][which], self.bits)


def build(fitted: Fitted, corpus: Corpus, max_bytes: int | None = None) -> Lexicon:
    """Return the tables of a saved model of at most about `max_bytes`; None leaves nothing out.

    Args:
        fitted: the trained model.
        corpus: the texts that it was trained on.
        max_bytes: size of the file. What changes answers least for its size is left out first.
    """
    kinds = _candidates(fitted, corpus)
    if max_bytes is not None:
        kinds = _within(kinds, max_bytes - OVERHEAD_BYTES - _core_bytes(fitted))
    return _lexicon(fitted, kinds)


def _core_bytes(fitted: Fitted) -> int:
    """At most so many bytes take the weights of the core, and what the metadata say of each label."""
    labels = fitted.views[0].classifier.head.out_features
    weights = sum(weight.numel() for view in fitted.views for weight in view.classifier.state_dict().values())
    return 100 * labels + (0 if _folded(fitted) else 4 * weights)


def _folded(fitted: Fitted) -> bool:
    """Whether rows are stored as what they say."""
    return all(view.classifier.foldable for view in fitted.views)


def _candidates(fitted: Fitted, corpus: Corpus) -> list[_Candidates]:
    """Words, bigrams and, with n-grams, these."""
    said = [_Said.of(view, share) for view, share in zip(fitted.row_views, fitted.shares, strict=True)]
    count = np.bincount(corpus.token, minlength=len(corpus.types))
    types = [name for name, times in zip(corpus.types, count, strict=True) if times]
    word = features.word_hashes(corpus.types)
    kinds = [_words(said, types, count[count > 0]), _features(said[0], *_unique(_bigrams(fitted, corpus, word)))]
    if len(said) == 2:
        hashes, exist = features.ngram_hashes(types, fitted.row_views[1].space.config)
        hash_N, count_N = _unique(hashes[exist])
        kinds.append(_features(said[1], hash_N, np.where(count_N > 1, NGRAM_WORTH**2 * count_N, 0)))
    return kinds


def _bigrams(fitted: Fitted, corpus: Corpus, word: Uint32) -> Uint32:
    return bigram_hashes(corpus, word) if fitted.row_views[0].space.config.bigrams else np.zeros(0, np.uint32)


def _unique(hashes: Uint32) -> tuple[Uint32, Int64]:
    found, count = np.unique(hashes, return_counts=True)
    return found, count


class _Said:
    """What each row of a view says, weighted."""

    def __init__(self, view: View, column_VGY: Tensor, worth_V: Tensor) -> None:
        self.view = view
        self.shape = tuple(column_VGY.shape[1:])
        weight_V = torch.from_numpy(view.space.weight)
        self.column_VX = torch.cat(
            [(column_VGY * weight_V.view(-1, 1, 1)).flatten(1), weight_V.square().unsqueeze(1)], 1
        )
        self.worth_V = (worth_V * weight_V).numpy()

    @classmethod
    @torch.no_grad()
    def of(cls, view: View, share: float) -> "_Said":
        """Fold a view where that can be done."""
        classifier = view.classifier
        seeds, labels = classifier.config.seeds, classifier.head.out_features
        value_VX, score_VS = torch.split(classifier.fold(view.table_VD), [seeds * labels, seeds], 1)
        value_VSC = value_VX.view(-1, seeds, labels) * share
        worth_V = (value_VSC.amax(2) - value_VSC.amin(2)).sum(1)
        folded_VSY = torch.cat([value_VSC, score_VS.unsqueeze(2)], 2)
        return cls(view, folded_VSY if classifier.foldable else view.table_VD.unsqueeze(1), worth_V)

    def sums(self, row_NK: NDArray[np.int32]) -> tuple[Float32, Float32]:
        """Return the sums over some rows each: columns [N, G, Y], energies [N]."""
        sum_NX = F.embedding_bag(torch.from_numpy(row_NK), self.column_VX, mode="sum").numpy()
        return sum_NX[:, :-1].reshape(len(row_NK), *self.shape), sum_NX[:, -1]


def _words(said: list[_Said], types: list[str], count: Int64) -> _Candidates:
    hash_N = features.word_hashes(types)
    columns, energies, worth_N = [], [], np.zeros(len(types), np.float32)
    for view in said:
        space = view.view.space
        hashes, exist = features.ngram_hashes(types, space.config)
        row_NK = np.concatenate([space.rows(hash_N)[:, None], np.where(exist, space.rows(hashes), 0)], 1)
        column_NGY, energy_N = view.sums(row_NK)
        columns.append(column_NGY)
        energies.append(energy_N)
        worth_N += view.worth_V[row_NK[:, 0]]
    _, first = np.unique(hash_N, return_index=True)
    return _Candidates(hash_N, columns, energies, worth_N * _often(count), 8).take(first)


def _features(said: _Said, hash_N: Uint32, count: Int64) -> _Candidates:
    row_N = said.view.space.rows(hash_N)
    column_NGY, energy_N = said.sums(row_N[:, None])
    return _Candidates(hash_N, [column_NGY], [energy_N], said.worth_V[row_N] * _often(count), 4)


def _often(count: Int64) -> Float32:
    return np.sqrt(count).astype(np.float32)


def _within(kinds: list[_Candidates], max_bytes: int) -> list[_Candidates]:
    """Leave out what is worth least for its bytes, of all kinds alike, until the rest takes at most `max_bytes`."""
    sizes = [len(kind.hash_R) for kind in kinds]
    kind_N = np.repeat(np.arange(len(kinds)), sizes)
    order = np.argsort(-np.concatenate([kind.worth_R / (kind.bytes_each + 2) for kind in kinds]), kind="stable")
    # How many of each kind are among the first so many.
    number = [np.cumsum(kind_N[order] == i) for i in range(len(kinds))]
    size = sum(n * kind.bytes_each for n, kind in zip(number, kinds, strict=True))
    size = size + Directory.size(number[0] + number[1])
    for ngrams in number[2:]:
        size = size + Directory.size(ngrams)
    kept = np.zeros(len(order), np.bool_)
    kept[order[size <= max_bytes]] = True
    parts = np.split(kept, np.cumsum(sizes)[:-1])
    return [kind.take(part) for kind, part in zip(kinds, parts, strict=True)]


def _lexicon(fitted: Fitted, kinds: list[_Candidates]) -> Lexicon:
    words, bigrams, *ngrams = kinds
    # Where a bigram has the hash of a word, which is rare, the word stays.
    bigrams = bigrams.take(~np.isin(bigrams.hash_R, words.hash_R))
    directory, (word_W, bigram_R) = Directory.of(words.hash_R, bigrams.hash_R)
    lexicon = Lexicon(
        features=replace(fitted.row_views[-1].space.config, bigrams=fitted.row_views[0].space.config.bigrams),
        folded=_folded(fitted),
        rows=directory,
        words=words.rounded(0, word_W),
        bigrams=bigrams.rounded(0, bigram_R),
    )
    if not ngrams:
        return lexicon
    directory, (ngram_R,) = Directory.of(ngrams[0].hash_R)
    return replace(lexicon, pieces=words.rounded(1, word_W), ngrams=directory, ngram_rows=ngrams[0].rounded(0, ngram_R))
