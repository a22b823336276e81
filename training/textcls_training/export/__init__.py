"""Turn a trained model into one ONNX file. Nothing here depends on how the model was trained.

`text_graph` and `heads` are the two halves of a saved graph: raw text to the sums of its tokens' rows, and from these
to the outputs. In between stand the lookup tables (`tables`), a row for each word, sequence and n-gram in few bytes:
`perfect_hash` finds the row of a hash, `quantize` makes rows small, `candidates` lists what could be in the tables, and
`prune` keeps what is worth its bytes. `bits_table` stands in the place of all that where an embedding has no rows.
`save` joins, checks and writes.

A word that training has seen has one row, which already sums up everything that it owns in every view: its word row
and, in the view "pieces", all its n-grams. So has a word that only a file of vectors knows. Words out of vocabulary
alone are put together from n-grams when an answer is asked for. Where a view is `foldable`, a row holds a value for
each label and a score; else its vector.

Shapes: R rows, W rows of words, B texts, T tokens, G groups of columns (of a folded view one a seed, else one a view),
Y columns of a group: C values and a score if folded, else D of the vector. X = Y + 1: the columns and the squared
feature norm.
"""
