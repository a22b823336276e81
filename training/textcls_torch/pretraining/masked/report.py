"""The outcome of pre-training by masked words, for programs and for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from textcls_torch.pretraining.masked.held_out import Guess, HeldOutScores
from textcls_training.pretraining.report import VectorsWritten


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedReport:
    """A pre-training by masked words, and its outcome.

    Attributes:
        written: the vectors.
        mixing: name of the mixing layer.
        gate: the final value of its gate; None without one.
        epochs: the number of whole epochs.
        tokens: the number of tokens read in all of them.
        seconds: how long that took.
        held_out: what held-out texts say; None if they contain no known word.
        interrupted: whether it was ended early.
    """

    written: VectorsWritten
    mixing: str
    gate: float | None
    epochs: int
    tokens: int
    seconds: float
    held_out: HeldOutScores | None
    interrupted: bool

    @property
    def tokens_per_second(self) -> float:
        """The tokens read per second."""
        return self.tokens / max(self.seconds, 1e-9)

    def to_json(self) -> dict[str, Any]:
        """Return everything."""
        return {
            "objective": "masked",
            **self.written.to_json(),
            "mixing": self.mixing,
            "gate": self.gate,
            "epochs": self.epochs,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 2),
            "tokens_per_second": round(self.tokens_per_second),
            "held_out": None if self.held_out is None else self.held_out.to_json(),
            "interrupted": self.interrupted,
        }

    def show(self, console: Console, output: Path) -> None:
        """Print the report, and the next command."""
        speed = f"{self.tokens:,} tokens in {self.seconds:.0f} s, {self.tokens_per_second:,.0f} a second"
        console.print(f"Trained on {self.written.texts:,} texts for {self.epochs} epochs: {speed}.", highlight=False)
        held = self.held_out
        if held is not None:
            console.print(
                f"Held out: {held.words:,} masked words, perplexity {held.perplexity:,.1f} (by their frequency alone "
                f"{held.frequency_perplexity:,.1f}), guessed at once {held.accuracy:.1%}",
                highlight=False,
                soft_wrap=True,
            )
        if self.gate is not None:
            console.print(f"The gate of the mixing layer ended at {self.gate:.2f}.", highlight=False)
        if held is not None and held.guesses:
            console.print(_guesses(held.guesses))
        self.written.show(console, output)


def _guesses(guesses: Sequence[Guess]) -> Table:
    table = Table("text, one word masked", "guesses", box=None, header_style="", pad_edge=False)
    for guess in guesses:
        text = Text()
        for place, token in enumerate(guess.tokens):
            text.append(f"[{token}]" if place == guess.place else token, style="bold" if place == guess.place else "")
            text.append(" ")
        best = ", ".join(f"{word} {probability:.0%}" for word, probability in guess.best)
        table.add_row(text, Text(best))
    return table
