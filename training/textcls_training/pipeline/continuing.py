"""Continue from a finished training (`textcls_training.pipeline.keeping`) with new rows.

There are two ways, and which one it is depends on the state alone:

- It holds all rows. Then all of them, old and new, are trained on anew: to the bytes of a training on both together.
- It holds a sample of them. Then each fit begins with what the same fit has learned: rows of the table and their
  accumulators, attention and head. It knows all features that there ever were, by their counts, and goes through the
  sample and the new rows in half the usual epochs. A split goes on from the fit of the same split, and holds out the
  rows that this one held out, and its share of the new ones; so no fit has ever learned from its validation rows.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from textcls._util.spill import IN_MEMORY, Spill
from textcls.display.text import listed, percent
from textcls.errors import ConfigError, InputError
from textcls.evaluation.learned_rows import learned_share
from textcls.model.features import FeatureConfig, word_hashes
from textcls.model.labels import labels_problem
from textcls.model.learned_texts import LearnedTexts
from textcls_training.config.resolve import (
    ResolvedConfig,
    default_epochs,
    default_epochs_of_several,
    default_optim,
    given_rates,
    many_labels,
)
from textcls_training.config.settings import OPTIONS, WITHOUT_EFFECT, ModelConfig, TrainConfig, from_options
from textcls_training.data.arrays import Int64
from textcls_training.data.counting import after
from textcls_training.data.dataset import Dataset, Split
from textcls_training.data.feature_space import rows_in
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import masks_of
from textcls_training.fit.cross_fit import split_name
from textcls_training.state.checkpoints import After, Checkpoints, Learned
from textcls_training.state.finished import Finished
from textcls_training.state.identity import plain
from textcls_training.state.rehearsal import NO_PART, joined

# The options that learned weights depend on: other values would make another model.
_STRUCTURE: Final = (
    "mixing", "attention", "embedding", "values", "ngrams", "bigrams", "dim", "max_tokens", "vectors", "head", "impl",
)  # fmt: skip
# The share of the usual epochs that a fit needs which continues from learned weights.
EPOCHS_SHARE: Final = 0.5
# The number of new labels that are named.
_NAMED: Final = 3


class Continuation:
    """A training that continues from a finished one.

    Attributes:
        finished: the training before.
        new: the rows that are new.
        given: the rows that it trains on: those kept from earlier trainings, then the new ones.
        config: the given options, completed by those of the earlier training.
    """

    def __init__(self, finished: Finished, new: LabelledTexts, config: TrainConfig) -> None:
        """Combine the kept and the new rows.

        Raises:
            InputError: rows have one label there and several here.
            ConfigError: an option asks for another model.
        """
        facts = finished.facts
        if facts.several != (new.label_sets is not None):
            kinds = ("several labels a text", "one label a text")
            before, now = kinds if facts.several else kinds[::-1]
            raise InputError(f"The rows of {finished.path} have {before}, and the new ones {now}.")
        if new.rationales is not None:
            raise ConfigError("Rationales cannot be used yet when a training continues; leave the column out.")
        self.finished, self.new = finished, new
        self.config = _merged(finished, config)
        given, renamed = joined(finished.rehearsal.rows, new), {**facts.renamed, **new.renamed}
        labels = {*facts.labels, *given.labels_in_use()}
        self.given = replace(given, renamed={old: new for old, new in renamed.items() if old not in labels})

    @property
    def anew(self) -> bool:
        """Whether all rows are present, and are trained on from the start."""
        return self.finished.facts.whole

    @property
    def learned_texts(self) -> LearnedTexts:
        """What is kept about the texts of all earlier rows."""
        return LearnedTexts.of_json(self.finished.facts.learned_texts)

    def judged_by(self, valid: LabelledTexts) -> str | None:
        """Return a sentence about validation rows that were learned from in earlier trainings, if there are any."""
        share = learned_share(self.learned_texts, set(map(self.learned_texts.hash_of, valid.texts)))
        if not share:
            return None
        return (
            f"About {percent(share, 0)} of the validation texts were learned from before ({self.finished.path}), so "
            "they promise too much: name others."
        )

    @property
    def rows(self) -> int:
        """How many rows there were in all trainings."""
        return self.finished.facts.rows + len(self.new.texts)

    @cached_property
    def names(self) -> list[str]:
        """All labels, sorted; some of them may have no row here.

        Raises:
            InputError: a model file could not contain them.
        """
        names = sorted({*self.finished.facts.labels, *self.given.labels_in_use()})
        if why := labels_problem(names):
            raise InputError(f"Of the labels, old and new ones, {why}.")
        return names

    def sentence(self) -> str:
        """Return in one line what is done."""
        facts, sample = self.finished.facts, len(self.finished.rehearsal.rows.texts)
        first = [repr(name) for name in sorted(self.new.labels_in_use() - set(facts.labels))]
        new = f"{len(self.new.texts):,} new ones"
        if first:
            shown = first if len(first) <= _NAMED else [*first[:_NAMED], f"{len(first) - _NAMED:,} more"]
            new += f", with the new label{'s' * (len(first) > 1)} {listed(shown)}"
        if self.finished.facts.options.get("shards"):
            new += "; its steps were dealt to shards, and these are whole"
        if self.anew:
            return f"{self.finished.path} holds all of its {facts.rows:,} rows: training again on them and {new}."
        return f"Going on from {self.finished.path}: {sample:,} of its {facts.rows:,} rows are rehearsed, beside {new}."

    def datasets(self, valid: LabelledTexts | None, spill: Spill = IN_MEMORY) -> tuple[Dataset, list[Split], Int64]:
        """Return all rows that are present, the train-valid splits, and which of these holds out each row.

        Args:
            valid: validation rows, if given.
            spill: where arrays with one number per token are stored.
        """
        facts, rehearsal, counts = self.finished.facts, self.finished.rehearsal, self.finished.counts
        assert counts is not None
        sample = len(rehearsal.rows.texts)
        dataset = Dataset.of(self.given, self.names, self.config.max_tokens, spill)
        dataset = dataset._replace(corpus=after(dataset.corpus, counts, np.arange(sample)))
        if valid is not None:
            split = Split(dataset, Dataset.of(valid, self.names, self.config.max_tokens, spill))
            return dataset, [split], np.full(len(self.given.texts), NO_PART)
        new_labels = dataset.labels[sample:]
        masks = masks_of(dataset.corpus.hash[sample:], new_labels, few=facts.splits > 1)
        part = np.append(rehearsal.part, np.full(len(self.new.texts), NO_PART))
        for i, mask in enumerate(masks):
            part[sample:][mask] = i
        return dataset, [self._split(dataset, part == i, i) for i in range(facts.splits)], part

    def _split(self, dataset: Dataset, mask: Any, number: int) -> Split:
        """Return a split whose training rows have only the features known to the earlier fit of the same split."""
        split, earlier = dataset.split(mask), dataset.corpus.earlier
        assert earlier is not None
        fit = split_name(number, self.finished.facts.splits)
        arrays = self.finished.learned(fit, "words.bucket", "words.buckets")
        types, pairs = (
            rows_in(hashes, arrays["words.bucket"], int(arrays["words.buckets"])) > 0
            for hashes in (word_hashes(earlier.types), earlier.pair)
        )
        train = split.train
        return Split(train._replace(corpus=replace(train.corpus, earlier=earlier.only(types, pairs))), split.valid)

    def resolved(self, found: ResolvedConfig, dataset: Dataset) -> ResolvedConfig:
        """Return the configuration of the earlier model, with rates and epochs for all rows of all trainings.

        Raises:
            InputError: the file of the vectors has changed.
        """
        facts, several = self.finished.facts, dataset.several
        if facts.vectors_sha256 != (found.vectors.sha256 if found.vectors else None):
            raise InputError(
                f"The vectors of {facts.vectors} are not those that {self.finished.path} has learned with."
            )
        usual = default_epochs(self.rows, len(self.names))
        if several:
            share = self.rows / len(dataset.labels)
            usual = default_epochs_of_several(share * float(np.median(dataset.label_mass(len(self.names)))))
        given, tokens = self.config.epochs, len(dataset.corpus.token) / len(dataset.labels)
        optim = default_optim(
            self.rows,
            tokens,
            given or usual,
            several=several,
            many=not several and many_labels(self.rows, len(self.names)),
            faster=facts.even_attention and not several,
            batch_size=self.config.batch_size,
        )
        return replace(
            found,
            model=ModelConfig(**facts.model),
            features=FeatureConfig.from_json(facts.features),
            even_attention=facts.even_attention,
            least_buckets=facts.least_buckets,
            epochs=given or max(1, round(EPOCHS_SHARE * usual)),
            optim=replace(optim, **given_rates(self.config)),
            machines_beside=False,  # They would know the rows that are at hand alone.
        )

    def checkpoints(self, kept: Checkpoints) -> Checkpoints:
        """Return the checkpoints of fits, which begin with what the earlier fits have learned."""
        return After(kept, self._learned)

    def _learned(self, fit: str) -> Learned:
        """Return what a fit begins with: what the same fit has learned, or else the fit on all rows."""
        facts = self.finished.facts
        same = {split_name(i, facts.splits) for i in range(facts.splits)}
        number = {name: i for i, name in enumerate(self.names)}
        labels = np.array([number[name] for name in facts.labels], np.int64)
        return Learned(self.finished.learned(fit if fit in same else facts.all_rows), labels)

    def metadata(self) -> dict[str, Any]:
        """Return the metadata about the earlier training."""
        return {"rows": self.finished.facts.rows, "rehearsed": len(self.finished.rehearsal.rows.texts)}


def _merged(finished: Finished, config: TrainConfig) -> TrainConfig:
    """Return the given options, completed by those of the earlier training."""
    facts, found = finished.facts, {}
    for name, option in OPTIONS.items():
        now, was = getattr(config, name), facts.options.get(name, option.default)
        other = (name in config.given or now != option.default) and plain(now) != plain(was)
        if other and name in _STRUCTURE and not facts.whole:
            value = "the default" if was is None else plain(was)
            raise ConfigError(
                f"{name} is {value} in {finished.path}, and what it has learned is for that alone; leave it out."
            )
        found[name] = now if other or name in WITHOUT_EFFECT else was
    if not facts.whole:
        found["vectors"] = facts.vectors
    return from_options(found)
