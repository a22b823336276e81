"""Who shares the steps of a training: this process alone, or several, as torchrun starts them, each with a GPU of its
own where there are enough.

Each process holds the whole training and takes the same steps. What a step needs consists of parts, as the gradients of
shards. Each process computes some parts, all get all of them, and everybody adds them up in one order: so the bytes do
not hang on how many processes there are. `torch.distributed` carries them (gloo, as they are added up on the CPU).

The first process alone writes and speaks. If any process ends early, no other one can go on, and all end with an error.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from textcls.errors import ConfigError, SurroundingsError, TextclsError
from textcls_training.config.settings import SHARDS
from textcls_training.fit.shards import dealt

if TYPE_CHECKING:
    from torch import Tensor

Made = TypeVar("Made")
# How long processes wait for each other before they take it that one hangs; one that ends is noticed at once.
WAIT: Final = timedelta(minutes=30)
# Seconds in which the first process tells of an error that all have, and torchrun ends the others.
PATIENCE: Final = 3.0
# Variables that torchrun sets.
_RANK, _NUMBER, _ON_THIS_MACHINE = "RANK", "WORLD_SIZE", "LOCAL_RANK"
_RENDEZVOUS: Final = ("MASTER_ADDR", "MASTER_PORT")


class Processes:
    """The process that there is, alone.

    Attributes:
        rank: its number among those that share the steps.
        number: how many there are.
    """

    rank: int = 0
    number: int = 1

    def shared(self, sizes: Sequence[int], compute: "Callable[[int], Tensor]") -> "list[Tensor]":
        """Return what `compute` gives of each part, in the order of the parts.

        Args:
            sizes: how many numbers each part is.
            compute: the number of a part -> its numbers [size], 32 bits each; it is called for some parts here, and
                for the others in other processes.

        Raises:
            SurroundingsError: another process has ended.
        """
        return [compute(k).cpu() for k in range(len(sizes))]

    def by_first(self, make: Callable[[], Made]) -> Made:
        """Return what the first process makes; the others wait for it.

        Raises:
            SurroundingsError: another process has ended.
        """
        return make()

    def agree(self, what: str, value: object) -> None:
        """Refuse to go on where processes would not take the same steps.

        Args:
            what: has to be the same, for the message.
            value: it is; what prints alike is the same.

        Raises:
            ConfigError: it is not the same in all.
            SurroundingsError: another process has ended.
        """


class Group(Processes):
    """Several processes that wait for each other at each call, which all make in the same order."""

    def __init__(self, rank: int, number: int) -> None:
        self.rank, self.number = rank, number

    def shared(self, sizes: Sequence[int], compute: "Callable[[int], Tensor]") -> "list[Tensor]":
        """Return what `compute` gives of each part, as `Processes.shared` says."""
        import torch
        from torch import distributed

        blocks = dealt(range(len(sizes)), self.number)
        # All send as many numbers: those of the fullest block.
        own = torch.zeros(max(sum(sizes[k] for k in block) for block in blocks))
        first = 0
        for k in blocks[self.rank]:
            own[first : first + sizes[k]] = compute(k)
            first += sizes[k]
        every = [torch.empty_like(own) for _ in blocks]
        with _lost():
            distributed.all_gather(every, own)
        found: list[Tensor] = []
        for each, block in zip(every, blocks, strict=True):
            of_block = [sizes[k] for k in block]
            found += torch.split(each[: sum(of_block)], of_block)
        return found

    def by_first(self, make: Callable[[], Made]) -> Made:
        """Return what the first process makes, as `Processes.by_first` says."""
        from torch import distributed

        made: list[Any] = [make() if self.rank == 0 else None]
        with _lost():
            distributed.broadcast_object_list(made)
        result: Made = made[0]
        return result

    def agree(self, what: str, value: object) -> None:
        """Refuse what is not the same in all, as `Processes.agree` says."""
        from torch import distributed

        told: list[str | None] = [None] * self.number
        with _lost():
            distributed.all_gather_object(told, repr(value))
        if len(set(told)) > 1:
            raise ConfigError(
                f"The processes that torchrun has started do not have the same {what}, so they cannot share steps; "
                "give all the same files, options, versions and type of processor."
            )


ALONE: Final = Processes()
_here: Processes = ALONE


def here() -> Processes:
    """Return who shares the steps of what is trained now."""
    return _here


class Started(NamedTuple):
    """Where this process stands among those that torchrun has started.

    Attributes:
        rank: its number, from 0 on.
        number: how many there are.
        on_this_machine: its number among those of this machine.
    """

    rank: int
    number: int
    on_this_machine: int


def started() -> Started | None:
    """Return where this process stands, by the variables that torchrun sets; None without them.

    Raises:
        SurroundingsError: they make no sense.
    """
    told = [os.environ.get(name) for name in (_RANK, _NUMBER, _ON_THIS_MACHINE)]
    if told[0] is None or told[1] is None or any(name not in os.environ for name in _RENDEZVOUS):
        return None
    try:
        rank, number, on_this_machine = (int(value or 0) for value in told)
    except ValueError:
        rank, number, on_this_machine = -1, 0, 0
    if not 0 <= rank < number or on_this_machine < 0:
        raise SurroundingsError(
            f"{_RANK}={told[0]} and {_NUMBER}={told[1]} are not what torchrun sets; unset these variables, or start "
            "the command by torchrun."
        )
    return Started(rank, number, on_this_machine)


def shards_among(told: int | None) -> int | None:
    """Return how many shards a step has where torchrun has started processes: by default the same for any number.

    Args:
        told: how many are wanted, if somebody has said so.

    Raises:
        ConfigError: there are fewer than processes.
    """
    place = started()
    if place is None:
        return told
    shards = told or SHARDS
    if place.number > shards:
        raise ConfigError(f"{place.number} processes need as many shards to share; add --shards {place.number}.")
    return shards


@contextmanager
def joined() -> Iterator[Processes]:
    """Let the processes that torchrun has started share the steps of what is trained in the block.

    All but the first are silent in it, and tell of an error only if the first one does not have it, too.

    Raises:
        SurroundingsError: the others do not come.
    """
    global _here  # As of torch.distributed, there is one group a process.
    place = started()
    if place is None or place.number == 1:
        yield ALONE
        return
    with ExitStack() as leaving:
        if place.rank > 0:
            leaving.enter_context(_silent())
        _here = _group_of(place)
        try:
            yield _here
        finally:
            _here = ALONE
            _leave()


def _group_of(place: Started) -> Group:
    import torch
    from torch import distributed

    if torch.cuda.is_available():
        torch.cuda.set_device(place.on_this_machine % torch.cuda.device_count())
    try:
        distributed.init_process_group("gloo", rank=place.rank, world_size=place.number, timeout=WAIT)
    except (RuntimeError, ValueError) as error:
        raise SurroundingsError(
            f"The {place.number} processes do not find each other: {_first_line(error)}; start them by torchrun."
        ) from error
    return Group(place.rank, place.number)


def _leave() -> None:
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()


@contextmanager
def _lost() -> Iterator[None]:
    """Say so when another process is gone."""
    try:
        yield
    except RuntimeError as error:
        raise SurroundingsError(
            "Another process that shares the steps has ended, or does not answer; no file was written. Its own "
            "message, or that of torchrun, says why."
        ) from error


@contextmanager
def _silent() -> Iterator[None]:
    """Say nothing; before an error is told, wait whether torchrun ends this process as the first one has it, too."""
    try:
        with (
            Path(os.devnull).open("w", encoding="utf-8") as nowhere,
            redirect_stdout(nowhere),
            redirect_stderr(nowhere),
        ):
            yield
    except KeyboardInterrupt:
        raise SystemExit(1) from None
    except TextclsError:
        time.sleep(PATIENCE)
        raise


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
