"""The objective of masked words: a word of a text is hidden, and guessed from the others."""

from pathlib import Path

from textcls_training.config.pretraining import PretrainConfig
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.pretraining.report import PretrainingReport
from textcls_training.pretraining.texts import PretrainingTexts


def run(
    texts: PretrainingTexts, output: Path, config: PretrainConfig, callback: Callback, stop: Stop
) -> PretrainingReport:
    """Learn vectors of words."""
    raise NotImplementedError
