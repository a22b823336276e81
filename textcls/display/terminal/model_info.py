"""The metadata of a model file, for the terminal."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from textcls.display.terminal.console import table_of
from textcls.display.text import named, one_line, percent, plural
from textcls.errors import ArtifactError
from textcls.evaluation.label_thresholds import resting_sentence, threshold_rows
from textcls.model.artifact import CLUSTERS, LABEL_NAMES, TRAINER, ModelInfo
from textcls.model.prototypes import Prototypes

# If there are more labels, the first ones are shown.
MOST_THRESHOLDS: Final = 40


def model_table(path: Path, info: ModelInfo, *, verbose: bool = False) -> Table:
    """Return the facts about the model file at `path`; if `verbose`, also how it was made."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in _facts(path, info, verbose):
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def threshold_table(info: ModelInfo) -> Iterator[Table | Text]:
    """Yield the threshold of each label if a text may have several, and how its logit becomes its log-odds."""
    rows = threshold_rows(info) or {}
    columns = (info.labels, info.thresholds or (), info.scale or (), info.shift or ())
    table = table_of(["label"], ["threshold", *(("held-out rows",) if rows else ()), "log-odds"])
    for label, threshold, scale, shift in list(zip(*columns, strict=True))[:MOST_THRESHOLDS]:
        number = (f"{rows[label]:,}",) if rows else ()
        table.add_row(Text(named(label)), f"{threshold:.3f}", *number, f"{scale:.3f} x logit {shift:+.3f}")
    yield table
    if sentence := resting_sentence(rows):
        yield Text(sentence)
    if len(info.labels) > MOST_THRESHOLDS:
        yield Text(f"({len(info.labels) - MOST_THRESHOLDS:,} more labels; --json has all)", style="dim")


def _facts(path: Path, info: ModelInfo, verbose: bool) -> list[tuple[str, str]]:
    """Return the facts that are shown about a model.

    Raises:
        ArtifactError: its metadata on the training, which nothing else needs, differ from what training writes.
    """
    try:
        return _read_facts(path, info) + (_details(info) if verbose else [])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(
            f"{path}: its metadata tell something else of the training than textcls writes ({error!r}); train it again."
        ) from error


def _read_facts(path: Path, info: ModelInfo) -> list[tuple[str, str]]:
    training = info.training
    return [
        ("file", f"{path}, {path.stat().st_size / 1e6:.2f} MB, format {info.format_version}"),
        ("task", info.task),
        (plural(len(info.labels), "label"), ", ".join(map(one_line, info.labels))),
        ("columns", one_line(f"{', '.join(info.text_columns)} -> {info.label_column}")),
        *([("beside them", _columns(info))] if info.columns else []),
        (
            "trained on",
            f"{plural(training['rows'], 'row')}, {plural(training['epochs'], 'epoch')}"
            f"{', one linear machine per label' if training.get(TRAINER) == 'one-vs-rest' else ''}"
            f"{', interrupted' if training.get('interrupted') else ''}",
        ),
        *([("went on from", _earlier(training["continued"]))] if training.get("continued") else []),
        *([("taught by", _teaching(training["distillation"]))] if training.get("distillation") else []),
        ("held out", f"{plural(training['held_out_rows'], 'row')}, {_held_out(info)}"),
        *_calibration(info),
        *([("prototypes", _prototypes(info, info.prototypes))] if info.prototypes is not None else []),
        ("reads", f"the first {info.max_tokens:,} tokens of a text: {', '.join(_features(info))}"),
        *([("vectors", _vectors(training["vectors"]))] if training.get("vectors") else []),
    ]


def _columns(info: ModelInfo) -> str:
    """Return the columns beside the text, and those that training has left out."""
    read = ", ".join(f"{one_line(column.name)} ({column.kind})" for column in info.columns)
    left_out = [one_line(gain["name"]) for gain in info.training.get("columns", []) if not gain["kept"]]
    return f"{read}; left out: {', '.join(left_out)}" if left_out else read


def _options(chosen: Mapping[str, Any]) -> str:
    """Return the options of a training that differ from the defaults, as its command takes them."""
    named = ((name.replace("_", "-"), value) for name, value in chosen.items())
    return one_line(
        " ".join(f"--{'' if value is not False else 'no-'}{name}{_written(value)}" for name, value in named)
    )


def _written(value: object) -> str:
    if isinstance(value, bool):
        return ""
    return f" {(','.join(map(str, value)) or 'none') if isinstance(value, list) else value}"


def _details(info: ModelInfo) -> list[tuple[str, str]]:
    """Return the details of how a model was made, which are needed to make it again."""
    training, network = info.training, info.model
    vectors = training.get("vectors")
    return [
        ("data", f"sha256 {training['data_sha256'][:12]}"),
        *(
            [("validation data", f"sha256 {validation[:12]}")]
            if (validation := training.get("validation_sha256"))
            else []
        ),
        ("seed", f"{training['seed']}"),
        *([("options", _options(training["options"]))] if training.get("options") else []),
        # The configuration contains the gate's initial value; its final one is among the facts of the training.
        ("network", ", ".join(f"{name} {value}" for name, value in network.items() if name != "gate")),
        *([("learned gate", f"{training['gate']}")] if training.get("gate") is not None else []),
        *([("word vectors", f"sha256 {vectors['sha256'][:12]}; {vectors['how']}")] if vectors else []),
        ("made with", ", ".join(f"{name} {value}" for name, value in training["versions"].items())),
    ]


def _held_out(info: ModelInfo) -> str:
    """Return how validation rows were answered."""
    training = info.training
    if CLUSTERS in training:
        facts = training[CLUSTERS]
        return (
            f"no labels; two halves of a text share {facts['information']:.2f} nats, and are in one cluster in "
            f"{percent(facts['agreement'])}"
        )
    if LABEL_NAMES in training:
        facts = training[LABEL_NAMES]
        return (
            f"no labels, their names alone; {percent(facts['agreement'])} get the label whose name {facts['by']} finds "
            "nearest"
        )
    if not info.several:
        return f"accuracy {_percent(training['held_out_accuracy'])}"
    scores = {"micro-F1": "held_out_micro_f1", "macro-F1": "held_out_macro_f1", "break-even": "held_out_break_even"}
    return ", ".join(f"{name} {_percent(training[key])}" for name, key in scores.items() if key in training)


def _percent(share: float | None) -> str:
    return "not known" if share is None else percent(share, 2)


def _calibration(info: ModelInfo) -> list[tuple[str, str]]:
    if info.several:
        return []
    return [
        ("temperature", f"{info.temperature:.3f}"),
        ("threshold", "none: never abstains" if info.threshold is None else f"{info.threshold:.3f}"),
    ]


def _prototypes(info: ModelInfo, prototypes: Prototypes) -> str:
    """Return what labels consist of, and which were taught."""
    texts = "with their texts" if prototypes.keeps_texts else "without their texts"
    line = f"{plural(sum(prototypes.counts), 'support row')}, {texts}, scale {prototypes.scale:g}"
    taught = [
        f"{named(label)} ({plural(prototypes.taught(i), 'example')})"
        for i, label in enumerate(info.labels)
        if prototypes.taught(i)
    ]
    return f"{line}; taught, and not calibrated: {', '.join(taught)}" if taught else line


def _earlier(continued: Mapping[str, Any]) -> str:
    """Return what the earlier training has learned from."""
    return f"a training on {plural(continued['rows'], 'row')}, {continued['rehearsed']:,} of them rehearsed"


def _teaching(facts: dict[str, Any]) -> str:
    """Return the source of the answers to the unlabelled texts that the model has learned from."""
    texts = plural(facts["rows"], "unlabelled text")
    return f"{facts['teacher']}, who answered {texts}, each of weight {facts['weight']:g}"


def _vectors(found: Mapping[str, Any]) -> str:
    """Return the source of the vectors of a training, and their gain."""
    return (
        f"{found['source']} (licence: {found['licence']}), {plural(found['words'], 'word')}, "
        f"{found['known_tokens']:.0%} of the training tokens, {found['ensemble_weight']:.2f} of the ensemble"
    )


def _features(info: ModelInfo) -> list[str]:
    sequences = {2: "bigrams", 3: "trigrams"}
    features = ["words", *(sequences[order] for order in info.features.orders)]
    if info.features.ngram_sizes:
        features.append(f"character n-grams of {' and '.join(map(str, info.features.ngram_sizes))}")
    return features
