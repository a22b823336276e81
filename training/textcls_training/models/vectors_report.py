"""The origin of the vectors of a model, and their effect."""

from dataclasses import dataclass

from textcls_training.data.corpus import Corpus
from textcls_training.models.ensemble import TrainedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsReport:
    """The origin of the vectors of a training, and their effect.

    Attributes:
        source: their name.
        licence: what they may be used for.
        how: how they were made.
        sha256: the hash of their file.
        words: how many words have a vector.
        dim: numbers per vector.
        known_tokens: the share of the training tokens that have one.
        ensemble_weight: the weight of their view.
    """

    source: str
    licence: str
    how: str
    sha256: str
    words: int
    dim: int
    known_tokens: float
    ensemble_weight: float

    @classmethod
    def of(cls, model: TrainedModel, corpus: Corpus) -> "VectorsReport | None":
        """Return the report of the vectors that a model was trained with; None if there were none.

        Args:
            model: the trained model.
            corpus: the texts it was trained on.
        """
        view = model.vector_view
        if view is None:
            return None
        found = view.space.vectors
        return cls(
            **{name: found.about.get(name, "not stated") for name in ("source", "licence", "how")},
            sha256=found.sha256,
            words=len(found.words),
            dim=found.dim,
            known_tokens=round(view.space.encode(corpus).known_share(), 6),
            ensemble_weight=round(model.ensemble_weights[model.views.index(view)], 6),
        )

    def sentence(self) -> str:
        """Return a sentence about the vectors for users."""
        return (
            f"The vectors of {self.source} (licence: {self.licence}) cover {self.known_tokens:.0%} of the tokens, "
            f"and have {self.ensemble_weight:.0%} of the weight in the ensemble."
        )
