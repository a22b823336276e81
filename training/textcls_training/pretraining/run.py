"""A whole pre-training: texts in, a file and a report on it out. Each objective is a package with its own `run`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from textcls._util.atomic_write import check_output_path
from textcls_training.config.pretraining import Objective, PretrainConfig
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.pretraining.report import PretrainingReport
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.torch_parts import look_for_torch, torch_part

# The unit of progress.
UNITS: Final[Mapping[Objective, str]] = {
    "cooccurrence": "tokens",
    "mutual-information": "texts",
    "label-names": "texts",
}


def pretrain(
    texts: PretrainingTexts,
    output: Path,
    config: PretrainConfig | None = None,
    *,
    callback: Callback = NOBODY,
    stop: Stop | None = None,
) -> PretrainingReport:
    """Learn from `texts` by the objective of `config`, and write what was learned to `output`.

    Args:
        texts: the texts.
        output: the file to write, completely or not at all.
        config: what differs from the defaults.
        callback: notified of progress, in `UNITS`.
        stop: requests an early stop; the file then contains what had been learned.

    Raises:
        InputError: nothing can be learned from the texts, or a file that the configuration names cannot be used.
        MissingExtraError: the teacher needs a package that is not installed.
        ConfigError: training diverged.
        SurroundingsError: `output` cannot be written.
        KeyboardInterrupt: a stop was requested before there was anything to keep.
    """
    check_output_path(output)
    config, stop = config or PretrainConfig(), stop or Stop()
    match config.objective:
        case "cooccurrence":
            from textcls_training.pretraining import cooccurrence

            return cooccurrence.run(texts, output, config, callback, stop)
        case "mutual-information":
            look_for_torch(f"Pretraining by the objective {config.objective}")
            report: PretrainingReport = torch_part("pretraining.clusters.run").run(
                texts, output, config, callback, stop
            )
            return report
        case "label-names":
            from textcls_training.pretraining.label_names import run as label_names

            return label_names.run(texts, output, config, callback, stop)
