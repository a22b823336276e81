"""Removed options and commands, with messages that say why each was removed, and what to do instead."""

from collections.abc import Mapping
from typing import Final

_STEPS: Final = "sharing the steps of one training never made it faster; leave it out."
_SUSPECTS: Final = (
    "leaving doubtful rows out made models of clean files worse; textcls check --labels --suspects FILE lists them, to "
    "be corrected."
)
_SHADOW: Final = "a version no longer answers silently beside another; textcls compare holds two against each other."
_TEACHING: Final = (
    "a service no longer rewrites its models; textcls teach changes the file, and --watch-seconds or POST "
    "/v1/admin/reload takes it up."
)
_CHANGES: Final = "textcls compare says which words are behind changed answers."
_RANGE: Final = "textcls explain --stability shows how sure the numbers of a text are."
_PAGE: Final = "textcls tune shows what mattered on the terminal, and --json prints every trial."
_MAP: Final = "distances on it meant little; the page has sizes, words and examples."
_MASKED: Final = (
    "vectors from guessed words were no better than from counted ones, and took ten times as long; leave it out."
)
_OF_COMMAND: Final[Mapping[str, Mapping[str, str]]] = {
    "train": {"shards": _STEPS, "workers": _STEPS, "engine": _STEPS, "drop-suspects": _SUSPECTS},
    "train-many": {"shards": _STEPS},
    "tune": {"shards": _STEPS, "html": _PAGE},
    "clusters": {"map": _MAP},
    "lexicon": {"before": _CHANGES, "stability": _RANGE},
    "pretrain": {"shards": _STEPS, "mixing": _MASKED, "mask-rate": _MASKED},
    "serve": {"teaching": _TEACHING, "max-taught-bytes": _TEACHING},
    "versions": {"shadow": _SHADOW, "no-shadow": _SHADOW},
}

_STUDY: Final = "it is a study and no longer a command; a checkout of the project has it as"
COMMANDS: Final[Mapping[str, str]] = {
    "ablate": f"{_STUDY} benchmarks/ablate.py.",
    "explain-benchmark": f"{_STUDY} benchmarks/explanations.py.",
}


def gone(command: str, option: str) -> str | None:
    """Return why a command no longer has an option; None if it never had it.

    Args:
        command: the name of the command.
        option: the name of the option, with or without hyphens.
    """
    return _OF_COMMAND.get(command, {}).get(option.lstrip("-").replace("_", "-"))
