"""Teach labels to a served model, and take them back: `textcls.model.teaching` for files that workers share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from textcls.errors import NotFoundError
from textcls.model.classifier import Classifier
from textcls.model.teaching import Taught, TaughtLabel, take_back, teach
from textcls.model.teaching.support import prototypes_of
from textcls.server.models import registry
from textcls.server.models.registry import Served
from textcls.server.models.reload import explained
from textcls.server.models.store import GenerationStore, Rewritten
from textcls.server.monitoring import audit, metrics
from textcls.server.monitoring.metrics import Counts

# Most characters of an unknown label that a message repeats.
_SHOWN: Final = 100


class Lesson(NamedTuple):
    """A label to teach to a model or to take back.

    Attributes:
        model: the name of the model.
        label: the label of the model, or a new one.
        examples: the examples of the label; None to take back what it has been taught.
    """

    model: str
    label: str
    examples: Sequence[str] | None

    @property
    def kind(self) -> str:
        """The kind of lesson, as a label value of the metrics."""
        return metrics.TAKEN_BACK if self.examples is None else metrics.TAUGHT


class Learnt(NamedTuple):
    """The result of a lesson.

    Attributes:
        file: how the model's file was rewritten.
        name: the label's name in the model.
        label: what was taught; None if a label was taken back.
        left: whether the model still knows the label: one that is taken back may be from its training.
        served: the new model, which this worker need not load again.
    """

    file: Rewritten
    name: str
    label: TaughtLabel | None
    left: bool
    served: Served


def learn(store: GenerationStore, served: Served, lesson: Lesson) -> Learnt:
    """Rewrite the file of a model after a lesson, and have all workers load it.

    Args:
        store: the store of what is served.
        served: the model as loaded by this worker.
        lesson: a lesson for this model.

    Raises:
        TextclsError: as `GenerationStore.rewrite`, `teach` and `take_back` do; nothing has changed.
    """
    done: list[Taught] = []

    def make(data: bytes, path: Path, digest: str) -> Taught:
        # Another worker may have taught it a moment ago.
        classifier = served.classifier if served.sha256 == digest else Classifier.from_bytes(data, path)
        done.append(_changed(classifier, data, lesson))
        return done[0]

    prototypes_of(served.classifier.info, served.classifier.path)
    file = store.rewrite(lesson.model, make)
    (taught,) = done
    version = served.version if served.version != registry.version_of(None, served.sha256) else None
    now = registry.serve(taught.classifier, served.name, version, file.after)
    name = served.classifier.known_as(lesson.label)
    return Learnt(file, name, next(iter(taught.labels), None), name in taught.classifier.labels, now)


def _changed(classifier: Classifier, data: bytes, lesson: Lesson) -> Taught:
    if lesson.examples is not None:
        return teach(classifier, data, {lesson.label: lesson.examples})
    if classifier.known_as(lesson.label) not in classifier.labels:
        raise NotFoundError(f"The model has no label {lesson.label[:_SHOWN]!r}.")
    return take_back(classifier, data, [lesson.label])


@contextmanager
def counted(counts: Counts, caller: audit.Caller, lesson: Lesson) -> Iterator[Callable[[Learnt], None]]:
    """Count a lesson and log its caller; yield the function to call with the result. Raises as `explained` does."""
    kind = lesson.kind.replace("_", " ")

    def refused(reason: str) -> None:
        counts.add(metrics.LESSONS, lesson.model, lesson.kind, "refused")
        audit.tell(f"A label was not {kind}", caller, "refused", model=lesson.model, reason=reason)

    def done(learnt: Learnt) -> None:
        file, label = learnt.file, learnt.label
        counts.add(metrics.LESSONS, lesson.model, lesson.kind, "done" if file.changed else "unchanged")
        facts = {"model": lesson.model, "label": lesson.label, "examples": 0 if label is None else label.examples}
        files = {"before": file.before, "after": file.after, "generation": file.number}
        audit.tell(f"A label was {kind}", caller, "done", **facts, **files)

    with explained("The model could not be taught", refused):
        yield done
