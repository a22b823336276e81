"""The tables of a saved model: what each word, bigram and n-gram says, in few bytes, within a budget.

A word that training has seen has one row, which already sums up everything that it owns in every view: its word row
and, in the view "pieces", all its n-grams. Only words that training has not seen are put together from n-grams when an
answer is asked for. Where a view is `foldable`, a row holds what it says of each label, and its score; else its vector.

`directory` finds the row of a hash, `rounding` makes rows small, `tables` is both together as a saved model has them,
`candidates` lists what there could be in them, and `building` keeps what is worth its bytes.

Shapes: R rows, W rows of words, B texts, T tokens, G groups of columns (of a folded view one a seed, else one a view),
Y columns of a group: C values and a score if folded, else D of the vector. X = Y + 1: the columns and the energy.
"""

from textcls_training.lexicon.building import budget, build
from textcls_training.lexicon.directory import FINGERPRINT, SPREAD, Directory
from textcls_training.lexicon.rounding import Rounded
from textcls_training.lexicon.tables import NO_SCORE, Lexicon

__all__ = ["FINGERPRINT", "NO_SCORE", "SPREAD", "Directory", "Lexicon", "Rounded", "budget", "build"]
