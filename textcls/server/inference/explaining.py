"""What a request may ask of an explanation beyond the tokens: evidence, units, parts, counterfactuals.

All of it is limited in advance: parts and counterfactuals to one text per request, the latter to a short one.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from textcls.errors import ConfigError, InputError, TooLargeError
from textcls.explain.counterfactual import MOST_ASKED, Search, counterfactual
from textcls.model import tokenizer
from textcls.model.classifier import Classifier
from textcls.model.cost import CALL_BYTES, Cost
from textcls.model.label_paths import contrasted, full_name, labels_below
from textcls.model.prediction import Prediction
from textcls.model.units import Unit

# A counterfactual runs the model on up to `MOST_ASKED` texts, which takes 0.2 seconds with this many tokens.
COUNTERFACTUAL_TOKENS: Final = 200
# With very many labels it takes longer: a limit, since no client waits forever, and other requests wait behind it.
COUNTERFACTUAL_SECONDS: Final = 5.0
# A token has its word, two pairs, and pieces if it is unknown: with parts, an answer is about this many times as long.
PARTS_FACTOR: Final = 12
# Memory per part, and per number in it, including its JSON.
OBJECT_BYTES, NUMBER_BYTES = 1_000, 150


class ExplainOptions(BaseModel):
    """The options of an explanation."""

    model_config = ConfigDict(extra="forbid", strict=True)

    label: str | None = Field(
        None, description="Explain this label, or node of a tree, in `evidence`; null: the most probable."
    )
    against: str | None = Field(None, description="Say why `label` and not this one, instead of all others.")
    unit: Unit = Field(
        "token", description="Also add up and average contributions over words, phrases or sentences, in `units`."
    )
    parts: bool = Field(
        False,
        description="Also say what words, sequences of words, pieces of unknown ones added, in `parts`; of one text.",
    )
    counterfactual: bool = Field(
        False,
        description="Also search the fewest tokens without which the answer is another, or `against`, in "
        f"`counterfactual`; `found` is null where that is the answer already; of one text of at most "
        f"{COUNTERFACTUAL_TOKENS} tokens.",
    )

    @property
    def plain(self) -> bool:
        """Whether only what each token added is asked for."""
        return self == _TOKENS

    @property
    def size(self) -> int:
        """How many times as long the answer is as with the tokens alone."""
        return (1 + (self.unit != "token")) * (PARTS_FACTOR if self.parts else 1)


_TOKENS: Final = ExplainOptions.model_validate({})


def _as_options(given: object) -> object:
    if isinstance(given, bool):
        return _TOKENS if given else None
    if given is not None and not isinstance(given, dict | ExplainOptions):
        raise PydanticCustomError("explain_type", 'must be true, false, or an object such as {"unit": "sentence"}')
    return given


Explain = Annotated[
    ExplainOptions | None,
    BeforeValidator(_as_options),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, ExplainOptions.model_json_schema(), {"type": "null"}]}),
]


def checked(options: ExplainOptions, classifier: Classifier, texts: Sequence[str]) -> ExplainOptions:
    """Return `options` with the full names of labels, after checking them.

    Raises:
        InputError: there is no such label, both are the same, the model has no parts, or there are several texts for an
            option that allows only one.
        TooLargeError: the text is too long for a counterfactual.
    """
    options = _with_full_names(options, classifier)
    for name in ("parts", "counterfactual"):
        if getattr(options, name) and len(texts) > 1:
            raise InputError(
                f"explain.{name} is told of one text, and inputs holds {len(texts):,}: send each by itself."
            )
    if options.parts and not classifier.graph.has_rows:
        raise InputError("explain.parts: the model credits whole tokens only.")
    if options.counterfactual:
        _check_length(texts[0], classifier.info.max_tokens)
    return options


def _with_full_names(options: ExplainOptions, classifier: Classifier) -> ExplainOptions:
    labels, tree = classifier.labels, classifier.tree
    found = {}
    for field, given in (("label", options.label), ("against", options.against)):
        if given is not None:
            try:
                found[field] = name = full_name(labels, tree, given)
                labels_below(labels, tree, name)
            except ConfigError as error:
                raise InputError(f"explain.{field}: {error}") from None
    label, against = found.get("label"), found.get("against")
    if label is not None:
        try:
            contrasted(labels, tree, label, against)
        except ConfigError as error:
            raise InputError(f"explain: {error}") from None
    elif against is not None and len(labels_below(labels, tree, against)) == len(labels):
        raise InputError(f"explain.against: no label stands apart from {against!r}; name another.")
    return options.model_copy(update=found)


def _check_length(text: str, most: int) -> None:
    if tokenizer.most_tokens(text) <= COUNTERFACTUAL_TOKENS:
        return
    tokens = sum(1 for _ in tokenizer.token_spans(text, most))
    if tokens > COUNTERFACTUAL_TOKENS:
        raise TooLargeError(
            f"explain.counterfactual is searched in texts of at most {COUNTERFACTUAL_TOKENS} tokens, and this one has "
            f"{tokens:,}: send a part of it."
        )


def microseconds(options: ExplainOptions, classifier: Classifier, texts: Sequence[str], labels: int) -> float:
    """Return an estimate of the time for everything beyond the tokens, in microseconds."""
    found = 0.0
    if options.parts:
        found += 4 * classifier.cost.microseconds(texts, labels)
    if options.counterfactual:
        # The search has a time limit.
        found += min(MOST_ASKED * classifier.cost.microseconds(texts, 0), 1e6 * COUNTERFACTUAL_SECONDS)
    return found


def working_bytes(options: ExplainOptions, cost: Cost, texts: Sequence[str]) -> int:
    """Return an estimate of the memory in bytes for everything beyond the tokens."""
    objects = (options.size - 1) * sum(map(cost.tokens, texts))
    return objects * (OBJECT_BYTES + cost.labels * NUMBER_BYTES) + (CALL_BYTES if options.counterfactual else 0)


def answer(
    options: ExplainOptions, classifier: Classifier, prediction: Prediction, labels: Sequence[str]
) -> dict[str, Any]:
    """Return what is requested beyond the tokens, as fields of a result.

    Args:
        options: the options of the request.
        classifier: the model.
        prediction: the prediction of one text, with its explanation.
        labels: the labels whose contributions are returned.
    """
    explanation = prediction.explanation
    if explanation is None or options.plain:
        return {}
    # Without a given label, `against` may be the most probable label or a node above it: explain the next one then.
    label = options.label
    if label is None and options.against is not None:
        label = explanation.most_probable_outside(explanation.below(options.against))
    found: dict[str, Any] = {"evidence": explanation.attribution(label, options.against).as_json()}
    if options.unit != "token":
        found |= {"unit": options.unit, "units": explanation.grouped(options.unit).units_as_json(labels)}
    if options.parts:
        found["parts"] = [_part(part.as_json(explanation.text), labels) for part in classifier.parts(explanation.text)]
    if options.counterfactual:
        against, best = options.against, classifier.labels.index(prediction.label)
        # That a text has no label to lose, or already has the wanted one, is not an error of the caller.
        nothing = against is not None and (
            against in prediction.assigned if prediction.several else best in explanation.below(against)
        )
        nothing |= prediction.several and options.label is None and not prediction.assigned
        lost = options.label
        if prediction.several and lost is None and not nothing and prediction.label not in prediction.assigned:
            lost = prediction.assigned[0]
        try:
            search = (
                Search(explanation.text, None, 0, 0)
                if nothing
                else counterfactual(
                    classifier,
                    explanation.row,
                    label=lost,
                    against=against,
                    seconds=COUNTERFACTUAL_SECONDS,
                    threshold=prediction.threshold,
                )
            )
        except ConfigError as error:
            raise InputError(f"explain: {error}") from None
        found["counterfactual"] = search.as_json()
    return found


def _part(part: dict[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    return {**part, "contributions": {name: part["contributions"][name] for name in labels}}
