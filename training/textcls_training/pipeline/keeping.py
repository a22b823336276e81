"""Keep a finished training so that another can continue from it (`textcls_training.pipeline.continuing`)."""

from dataclasses import asdict

from textcls_training.config.resolve import ResolvedConfig
from textcls_training.config.settings import OPTIONS
from textcls_training.data.counting import counts_of
from textcls_training.distillation.distil import Fitted
from textcls_training.fit.cross_fit import all_rows_to, split_name
from textcls_training.pipeline.preparing import Prepared, Task
from textcls_training.state.finished import Facts, content
from textcls_training.state.folder import StateFolder
from textcls_training.state.identity import plain
from textcls_training.state.rehearsal import Rehearsal


def keep(folder: StateFolder, task: Task, prepared: Prepared, fitted: Fitted) -> str | None:
    """Keep rows, counts and what fits have learned; return why no training can continue from it, None if one can."""
    given, dataset, config, resolved = task.given, prepared.dataset, task.config, fitted.config
    part, splits, alone = prepared.part[: len(dataset.labels)], len(prepared.splits), _alone(task, resolved)
    rehearsal = Rehearsal.of(given, dataset.labels, part, config.rehearsal_rows)
    whole, vectors = rehearsal.whole and task.rows == len(given.texts), resolved.vectors
    facts = Facts(
        labels=list(prepared.names),
        several=dataset.several,
        rows=task.rows,
        splits=splits,
        all_rows=all_rows_to(fitted.selected.epochs, resolved),
        options={name: plain(getattr(config, name)) for name in OPTIONS},
        features=resolved.features.to_json(),
        model=asdict(resolved.model),
        even_attention=resolved.even_attention,
        least_buckets=resolved.least_buckets,
        vectors="none" if vectors is None else str(config.vectors or "english"),
        vectors_sha256=None if vectors is None else vectors.sha256,
        alone=alone,
        whole=whole,
        text_columns=list(given.text_columns),
        label_column=given.label_column,
        labels_written=given.written.to_json(),
        renamed=dict(given.renamed),
        learned_texts=task.learned_texts(given.texts).to_json(),
        weight_column=given.written.weight_column,
        valid=task.valid is not None,
    )
    fits = set() if whole or alone else {facts.all_rows, *(split_name(i, splits) for i in range(splits))}
    folder.finish(*content(facts, rehearsal, counts_of(dataset.corpus) if fits else None), fits)
    return alone


def _alone(task: Task, resolved: ResolvedConfig) -> str | None:
    """Return why no other training can continue from this one; None if one can."""
    if task.unlabelled is not None:
        return "it has learned from unlabelled texts"
    if task.given.rationales is not None:
        return "it has learned from rationales"
    if task.given.columns:
        return "it has read columns beside the text"
    if task.config.model is not None or task.config.optim is not None:
        return "its model was given as a whole"
    if task.keeps_fits and resolved.impl == "reference":
        return "it was trained in PyTorch, and its state holds a sample of its rows; --rehearsal-rows holds more"
    return None
