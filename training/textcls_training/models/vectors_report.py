"""Where the vectors of a model come from, and what they bring."""

from dataclasses import dataclass

from textcls_training.data.corpus import Corpus
from textcls_training.models.ensemble import TrainedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsReport:
    """Where the vectors of a training come from, and what they bring.

    Attributes:
        source: their name.
        licence: what they may be used for.
        how: what was done to make them.
        sha256: of their file.
        words: how many words have a vector.
        dim: numbers of a vector.
        known_tokens: share of the training tokens that have one.
        ensemble_weight: how much their view counts.
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
            corpus: the texts that it was trained on.
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
        """Return what people are told of it."""
        return (
            f"The vectors of {self.source} (licence: {self.licence}) cover {self.known_tokens:.0%} of the tokens, "
            f"and have {self.ensemble_weight:.0%} of the weight in the ensemble."
        )
