"""Manage the texts to label, the answers, who works on which text, and the model's proposals.

Every method that a request calls may be called from several threads. A text is leased to the person it is shown to, so
that two people never answer the same one. Learning runs in a thread that waits for a process.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, get_args

import numpy as np

from textcls.errors import InputError, NotFoundError, SurroundingsError, TextclsError, TooLargeError
from textcls.evaluation.data_quality.duplicates import near
from textcls.evaluation.data_quality.label_audit import SuspectRow
from textcls.labelling import progress, proposals
from textcls.labelling.answers import Annotation, AnnotationsFile, Chosen, labels_of
from textcls.labelling.given import GivenAnswers
from textcls.labelling.learner import Learned, Learner
from textcls.labelling.matching import labels_of_copies, matched, one_of_each
from textcls.model.classifier import Classifier
from textcls.model.labels import label_problem

# Seconds for which a text is reserved for the person it was shown to.
LEASE: Final = 600.0
# A training begins once there are this many new answers, or this large a share of all.
NEW_ANSWERS: Final = 5
NEW_SHARE: Final = 0.05
MOST_LABELS: Final = 1000
MOST_PEOPLE: Final = 100
# At most this many characters of a text are shown, so that one long row does not stall the page.
SHOWN_CHARACTERS: Final = 20_000


class Lease(NamedTuple):
    """Who has a text, until when, and why it was chosen."""

    who: str
    until: float
    chosen: Chosen


class Done(NamedTuple):
    """A person's last action: the text, and the answer that it had before, if any."""

    row: int
    skipped: bool
    before: Annotation | None


class Session:
    """The work on one file of texts."""

    def __init__(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        file: AnnotationsFile,
        learner: Learner | None = None,
        *,
        start: Sequence[int] = (),
        suspects: Sequence[SuspectRow] = (),
        given: GivenAnswers | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin, or continue with the answers of `file`.

        Args:
            texts: the texts.
            labels: the initial labels; the answers may add others.
            file: the file that answers are written to.
            learner: learns from them; None for no learning.
            start: the texts to ask for while there is no model.
            suspects: texts with a doubtful label; if there are any, only these are asked for.
            given: answers that come with the texts, which are proposed, the doubtful ones first.
            now: a clock, in seconds.
        """
        self.texts, self.file, self.several = texts, file, file.several
        named = () if given is None else given.labels
        self.labels = list(dict.fromkeys([*labels, *named, *labels_of(file.answers)]))
        self._learner, self._given, self._now = learner, given, now
        self._suspects = {suspect.row: suspect for suspect in suspects}
        self._lock = threading.Condition()
        self._answer_of = matched(texts, file.answers)
        self._askable = set(self._suspects) if suspects else one_of_each(texts, file.answers)
        generator = np.random.default_rng(0)
        self._random = [row for row in generator.permutation(len(texts)).tolist() if row in self._askable]
        self._queue: list[int] = [suspect.row for suspect in suspects] or list(start)
        if given is not None:
            self._queue = given.order()
        self._leases: dict[int, Lease] = {}
        self._skipped: set[int] = set()
        self._people: set[str] = set()
        self._done: defaultdict[str, list[Done]] = defaultdict(list)
        self._asked = sum(self._is_done(row) for row in self._askable)
        self._copies = labels_of_copies(file.answers)
        self.classifier: Classifier | None = None
        self._learned, self._learning, self._failed = Learned(0, None), False, ""
        # The number of answers when learning last began; None before the first time, which is for the hints.
        self._tried: int | None = None
        self._closed = False
        self._estimates: list[progress.Estimate] = []

    # Requests

    def state(self) -> dict[str, Any]:
        """Return the state: labels, counts, accuracy and advice."""
        with self._lock:
            counts = Counter(label for answer in self.file.answers for label in answer.labels)
            left = len(self._askable) - self._asked
            return {
                "labels": [{"label": label, "rows": counts[label]} for label in self.labels],
                "several": self.several,
                "suspects": bool(self._suspects),
                "answers": self._asked if self._suspects else len(self.file.answers),
                "left": left,
                "skipped": len(self._skipped),
                "output": str(self.file.path),
                "people": len(self._people),
                "learning": self._learning,
                "learned_from": self._learned.answers if self.classifier else 0,
                "failed": self._failed,
                "estimates": [found.as_json() for found in self._estimates],
                "agreement": self._agreement(),
                "advice": progress.advice(self._learned.answers, self._learned.changed),
            }

    def next(self, who: str) -> dict[str, Any] | None:
        """Return the text that `who` is to label, the same until it is answered; None if none is left."""
        with self._lock:
            if len(self._people | {who}) > MOST_PEOPLE:
                raise TooLargeError(f"{MOST_PEOPLE} browsers have been here, which is the maximum; start again.")
            self._people.add(who)
            self._end_leases()
            held = next((row for row, lease in self._leases.items() if lease.who == who), None)
            if held is None:
                found = self._choose()
                if found is None:
                    return None
                held, chosen = found
                self._lease(held, who, chosen)
            return self._shown(held)

    def answer(self, who: str, row: int, labels: Sequence[str], by: str | None = None) -> None:
        """Save the answer of `who` to a text; it is on disk when this returns.

        Raises:
            InputError: these cannot be its labels, or somebody else has the text.
            SurroundingsError: it could not be saved.
        """
        with self._lock:
            given = self._checked(row, labels)
            before = self._answer_of.get(row)
            if self._is_done(row):
                if before is not None and set(before.labels) == set(given):
                    return  # It was saved, and the reply got lost.
                raise InputError("Somebody else has labelled this text in the meantime.")
            lease = self._leases.get(row)
            if lease is not None and lease.who != who:
                raise InputError("Somebody else is labelling this text.")
            chosen: Chosen = lease.chosen if lease is not None else "model"
            beside = {} if before is None else before.beside
            answer = Annotation(self.texts[row], given, row, chosen, by, beside)
            if before is None:
                self.file.append(answer)
            else:
                self.file.exchange(answer if one is before else one for one in self.file.answers)
            self._leases.pop(row, None)
            self._asked += 1
            self._changed(row, answer)
            self._done[who].append(Done(row, False, before))

    def skip(self, who: str, row: int) -> None:
        """Skip a text for the rest of the session."""
        with self._lock:
            self._check_row(row)
            lease = self._leases.get(row)
            if lease is None or lease.who != who:
                return
            del self._leases[row]
            self._skipped.add(row)
            self._done[who].append(Done(row, True, self._answer_of.get(row)))

    def undo(self, who: str) -> None:
        """Take back the last answer of `who`, or bring back the text they skipped; it is theirs again.

        Raises:
            NotFoundError: there is nothing to take back.
            SurroundingsError: the file cannot be written; the answer stays.
        """
        with self._lock:
            self._check_open()
            if not self._done[who]:
                raise NotFoundError("There is nothing to take back.")
            row, skipped, before = self._done[who][-1]
            chosen: Chosen = "suspect" if self._suspects else "model"
            if skipped:
                self._skipped.discard(row)
            else:
                now = self._answer_of[row]
                chosen = next((one for one in get_args(Chosen) if one == now.chosen), chosen)
                kept = (before if one is now else one for one in self.file.answers)
                self.file.exchange([one for one in kept if one is not None])
                self._asked -= 1
                self._changed(row, before)
            self._done[who].pop()
            for held in [held for held, lease in self._leases.items() if lease.who == who]:
                del self._leases[held]
            self._lease(row, who, chosen)

    def close(self) -> None:
        """End learning."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        if self._learner is not None:
            self._learner.close()

    # Choosing

    def _choose(self) -> tuple[int, Chosen] | None:
        taken = self._skipped | set(self._leases)

        def free(row: int) -> bool:
            return row in self._askable and row not in taken and not self._is_done(row)

        by_queue = next(filter(free, self._queue), None)
        if self._suspects:
            return None if by_queue is None else (by_queue, "suspect")
        turn = (self._asked + len(self._leases) + 1) % progress.RANDOM_EVERY == 0
        if by_queue is None or turn:
            at_random = next(filter(free, self._random), None)
            return None if at_random is None else (at_random, "random")
        return by_queue, "start" if self.classifier is None else "model"

    def _lease(self, row: int, who: str, chosen: Chosen) -> None:
        self._leases[row] = Lease(who, self._now() + LEASE, chosen)

    def _end_leases(self) -> None:
        now = self._now()
        self._leases = {row: lease for row, lease in self._leases.items() if lease.until > now}

    def _is_done(self, row: int) -> bool:
        found = self._answer_of.get(row)
        return found is not None and found.chosen != "given"

    # Answers

    def _check_open(self) -> None:
        if self._closed:
            raise SurroundingsError("Labelling has ended; nothing was saved.")

    def _check_row(self, row: int) -> None:
        if row not in self._askable:
            raise NotFoundError(f"There is no text {row} to label.")

    def _checked(self, row: int, labels: Sequence[str]) -> tuple[str, ...]:
        self._check_open()
        self._check_row(row)
        given = tuple(dict.fromkeys(label.strip() for label in labels))
        if not self.several and len(given) != 1:
            raise InputError("Give one label; with --several a text may have any number.")
        for label in given:
            if wrong := label_problem(label):
                raise InputError(f"The label {label[:40]!r} {wrong}.")
        if len({*self.labels, *given}) > MOST_LABELS:
            raise TooLargeError(f"More than {MOST_LABELS:,} labels cannot be given on this page.")
        return given

    def _changed(self, row: int, answer: Annotation | None) -> None:
        """Record a new answer to a text, or that it has none any more."""
        copies = self._copies.setdefault(near(self.texts[row]), Counter())
        if before := self._answer_of.pop(row, None):
            copies.subtract(before.labels)
        if answer is not None:
            self._answer_of[row] = answer
            self.labels += [label for label in answer.labels if label not in self.labels]
            copies.update(answer.labels)
        self._lock.notify_all()

    # What is shown of a text

    def _shown(self, row: int) -> dict[str, Any]:
        text, now = self.texts[row], self._answer_of.get(row)
        copies = self._copies.get(near(text), Counter()).copy()
        if now is not None:
            copies.subtract(now.labels)
        return {
            "row": row,
            "text": text[:SHOWN_CHARACTERS],
            "cut": max(0, len(text) - SHOWN_CHARACTERS),
            "chosen": self._leases[row].chosen,
            "labels": [] if now is None else list(now.labels),
            "answered": self._is_done(row),
            "copies": [{"label": label, "rows": count} for label, count in copies.most_common() if count > 0],
            "proposal": self._proposal(row, text),
        }

    def _proposal(self, row: int, text: str) -> dict[str, Any] | None:
        if self._suspects:
            return proposals.by_audit(self._suspects[row])
        found = proposals.by_names(self._learned.hints.get(row, ()))
        if self.classifier is not None:
            found = proposals.by_model(self.classifier, text, SHOWN_CHARACTERS)
        # The labels are then the given ones, and the tint is the model's.
        return found if self._given is None else {**(found or {}), **self._given.proposal(row)}

    def _agreement(self) -> dict[str, Any] | None:
        """Return how often the given answers match those of people, on a random sample of the texts."""
        if self._given is None:
            return None
        sample = progress.random_sample(self._random, self._answer_of, frozenset(self._skipped))
        right = {row: self._given.answered(row) == {*self._answer_of[row].labels} for row in sample}
        found = progress.estimate(right, sample, len(self.file.answers))
        return None if found is None else found.as_json()

    # Learning

    def learn_forever(self) -> None:
        """Learn from the answers whenever there are enough new ones, until the session is closed."""
        learner = self._learner
        if learner is None:
            return
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._closed or self._enough_new())
                if self._closed:
                    return
                labels, answers = list(self.labels), list(self.file.answers)
                self._learning = True
            try:
                found = learner.learn(labels, answers)
                classifier = None if found.model is None else Classifier.load(found.model)
            except TextclsError as error:
                with self._lock:
                    self._learning, self._failed = False, str(error)
                    self._tried = len(answers)
                continue
            with self._lock:
                self._take(found, classifier, len(answers))

    def _enough_new(self) -> bool:
        if self._tried is None:
            return True
        new = abs(len(self.file.answers) - self._tried)
        return new >= max(NEW_ANSWERS, NEW_SHARE * self._tried)

    def _take(self, found: Learned, classifier: Classifier | None, answers: int) -> None:
        self._tried, self._learning, self._failed = answers, False, ""
        self._learned = found if found.hints else replace(found, hints=self._learned.hints)
        if classifier is not None:
            self.classifier = classifier
        if found.order and self._given is None:
            self._queue = list(found.order)
        sample = progress.random_sample(self._random, self._answer_of, frozenset(self._skipped))
        estimate = progress.estimate(found.held_out, sample, found.answers)
        if estimate is not None:
            self._estimates.append(estimate)
