"""The spelling of texts: the sum of the codes of their words, known or not.

Shapes: R texts, V words, D bits of a code.
"""

import numpy as np

from textcls_training.data.arrays import Float32
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.models.bit_codes import codes


def spelling(space: FeatureSpace, corpus: Corpus) -> Float32:
    """Return the weighted sum of the codes of each text's words [R, D]; an unseen word has the largest weight, 1.

    As with `norm` attention, it is divided by the root of the sum of the squared weights.
    """
    weight_V = _word_weights(space, corpus)
    code_VD = codes(corpus.types) * weight_V[:, None]
    spelling_RD = np.zeros((len(corpus), code_VD.shape[1]), np.float32)
    for i in range(len(corpus)):
        token = corpus.token[corpus.start[i] : corpus.start[i + 1]]
        if len(token):
            spelling_RD[i] = code_VD[token].sum(0) / np.linalg.norm(weight_V[token])
    return spelling_RD


def _word_weights(space: FeatureSpace, corpus: Corpus) -> Float32:
    weight_V = space.weight[space.word_rows(corpus.types)[:, 0]]
    return np.where(weight_V == 0, np.float32(1), weight_V)
