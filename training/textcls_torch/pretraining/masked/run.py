"""A pre-training by masked words: texts in, a file of vectors and a report out."""

from pathlib import Path
from typing import Final

from textcls_torch.pretraining.masked.held_out import HeldOutScores
from textcls_torch.pretraining.masked.report import MaskedReport
from textcls_torch.pretraining.masked.trainer import MaskedTrainer
from textcls_training.config.clock import Clock
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.threads import reproducible
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.pretraining.vectors import save_vectors
from textcls_training.pretraining.vocabulary import Vocabulary

# The default number of tokens read in all, and the most epochs for that: few texts are read more often.
TOKENS: Final = 4_000_000
MOST_EPOCHS: Final = 20


def run(texts: PretrainingTexts, output: Path, config: PretrainConfig, callback: Callback, stop: Stop) -> MaskedReport:
    """Learn vectors of words; see `textcls_training.pretraining.run.pretrain`."""
    with reproducible(config.seed):
        trainer, seconds = train(texts, config, callback, stop)
        return _written(trainer, seconds, texts, output, config, interrupted=stop.requested)


def _written(
    trainer: MaskedTrainer,
    seconds: float,
    texts: PretrainingTexts,
    output: Path,
    config: PretrainConfig,
    *,
    interrupted: bool,
) -> MaskedReport:
    """Write the vectors, and measure on held-out texts."""
    held_out = HeldOutScores.of(trainer, Corpus.of(texts.held_out, config.max_tokens))
    how = f"words masked in texts and guessed from the others, mixing {config.mixing}, {trainer.epochs} epochs"
    words, row_VD = trainer.vocabulary.words, trainer.words.row_VD[1:]
    written = save_vectors(output, words, row_VD, how, texts, config)
    return MaskedReport(
        written=written,
        mixing=config.mixing,
        gate=trainer.model.gate,
        epochs=trainer.epochs,
        tokens=trainer.tokens,
        seconds=seconds,
        held_out=held_out,
        interrupted=interrupted,
    )


def train(
    texts: PretrainingTexts, config: PretrainConfig, callback: Callback, stop: Stop
) -> tuple[MaskedTrainer, float]:
    """Return a model that has learned from `texts`, and the seconds that this took.

    Raises:
        InputError: there are too few words.
        ConfigError: training diverged.
    """
    corpus = Corpus.of(texts.train, config.max_tokens)
    epochs = config.epochs or min(MOST_EPOCHS, max(1, round(TOKENS / max(1, len(corpus.token)))))
    trainer = MaskedTrainer(corpus, Vocabulary.of(corpus, config.words), config, epochs)
    clock = Clock()
    callback.phase("masked words", epochs * len(corpus.token))
    for number in range(1, epochs + 1):
        trainer.train_epoch(number, callback, stop)
        if stop.requested:
            break
        stop.possible = True
        clock.lap(str(number))
        callback.epoch(number, None)
    clock.lap("rest")
    return trainer, sum(clock.seconds.values())
