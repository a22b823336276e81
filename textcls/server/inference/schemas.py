"""A request about texts, with its limits, and the answer to it, both with examples for OpenAPI."""

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from textcls.server.inference.explaining import Explain

_MOST_FIELDS: Final = 16
_QUESTION: Final = "My card was charged twice"
_CELL: Final = {"type": ["string", "number", "boolean", "null"]}
_ROW: Final[dict[str, Any]] = {"type": "object", "additionalProperties": _CELL}
_ROWS_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string"},
        _ROW,
        {"type": "array", "items": {"anyOf": [{"type": "string"}, _ROW]}, "minItems": 1},
    ],
    "description": (
        "A text or a list of texts. A list is always a batch: each text is answered by itself. A model that was "
        "trained on several columns (`text_columns` of GET /v1/models) takes objects that hold all of them, with an "
        "empty string for what there is not; one that reads columns beside the text (`columns`) takes these, too."
    ),
}


def _as_list(given: object) -> object:
    return [given] if isinstance(given, str | dict) else given


def _as_integer(given: object) -> object:
    """Return 3.0 as 3: JSON has only one kind of number."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


class TextOrRow:
    """A text, or a row with the text columns of the model, which is checked later, when the model is known.

    Not plain `str`, which refuses the unpaired surrogates that JSON may contain and that a model reads as U+FFFD.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> core_schema.CoreSchema:
        """Accept both unchanged: a union would check one after the other, and name the branch in its errors."""
        return core_schema.is_instance_schema((str, dict), cls_repr="text")


Rows = Annotated[
    list[TextOrRow],
    FailFast(),
    Field(min_length=1),
    BeforeValidator(_as_list),
    WithJsonSchema(_ROWS_SCHEMA),
]
Score = Annotated[float, Field(ge=0, le=1)]


class StrictRequest(BaseModel):
    """A body that may contain only known fields of the right types; `such_as` is an example for messages."""

    model_config = ConfigDict(extra="forbid", strict=True)
    such_as: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, given: object) -> object:
        """Refuse a large number of unknown fields at once: as separate errors they would take seconds."""
        if isinstance(given, dict) and len(given) > _MOST_FIELDS:
            raise PydanticCustomError("too_many_fields", "The body has more fields than a request can have")
        return given


class ClassifyRequest(StrictRequest):
    """Texts to classify."""

    such_as = '{"inputs": "a text"}'
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"inputs": _QUESTION, "explain": True},
                {"inputs": [_QUESTION, "Where is my parcel?"], "top_k": 1, "threshold": 0.6},
                {"inputs": _QUESTION, "explain": {"unit": "sentence", "against": "returns", "counterfactual": True}},
            ]
        },
    )

    inputs: Rows
    model: str | None = Field(None, description="Name of the model to ask; null: the first one served.")
    top_k: Annotated[int | None, BeforeValidator(_as_integer)] = Field(
        None, ge=1, description="Return this many labels per text, best first; null: all."
    )
    explain: Explain = Field(
        False,
        validate_default=True,
        description="Also say what each token added to the logit of each label returned: true, or an object that asks "
        "for more.",
    )
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Score below which the decision is `abstain`; null: the model's own threshold, if it has one. "
        "Where a text may have several labels: the score from which on each is assigned, one for all; null: the "
        "model's own thresholds, one a label.",
    )


class LabelScore(BaseModel):
    """A label and its calibrated probability."""

    label: str
    score: Score


class Token(BaseModel):
    """A token and what it added."""

    text: str = Field(
        description="The token as it was written: inputs[i][start:end]; of an object, of its columns joined by "
        "line breaks."
    )
    start: int = Field(ge=0, description="Offset in Unicode code points (not in bytes, not in UTF-16 units).")
    end: int = Field(ge=1, description="Offset behind the token, likewise.")
    attention: Score = Field(description="Share of the attention; the shares of all tokens add up to 1.")
    contributions: dict[str, float] = Field(description="What the token added to the logit of each label, signed.")
    known: bool = Field(
        description="False if the word is unknown to the model: training has not seen it, or it was left out for size."
    )


class CellContribution(BaseModel):
    """The value of a column beside the text, and what it added."""

    name: str = Field(description="Of the column, with the part of a date: `opened (weekday)`.")
    value: str = Field(description="What stands in it, as the model reads it; empty where it is missing.")
    contributions: dict[str, float] = Field(description="What it added to the logit of each label, signed.")


class CellEvidence(BaseModel):
    """How strongly a column beside the text speaks for a label."""

    name: str
    value: str
    added: float


class SupportRow(BaseModel):
    """A support row of a label: the mean of some training rows, or of taught examples."""

    weight: Score = Field(description="Its share of the prototype that the text was compared with.")
    row: int = Field(ge=1, description="Number of the row nearest to it, from 1: of the training, or of the examples.")
    rows: int = Field(ge=1, description="Of how many rows it is the mean.")
    taught: bool = Field(description="Whether it was taught after the training.")
    text: str | SkipJsonSchema[None] = Field(None, description="Text of that row, if the file keeps texts.")


class Evidence(BaseModel):
    """One number per token: how strongly it speaks for a label, against all others or against one."""

    label: str = Field(description="The label explained.")
    against: str | None = Field(description="The one it is held against; null for all others.")
    bias: float = Field(description="What the bias adds.")
    tokens: list[float] = Field(description="What each token adds, in reading order.")
    columns: list[CellEvidence] | SkipJsonSchema[None] = Field(
        None, description="Present if the model reads columns beside the text: what each of them adds."
    )
    total: float = Field(description="The sum of all of it.")


class UnitOfText(BaseModel):
    """A word, phrase or sentence and what it added."""

    text: str = Field(description="inputs[i][start:end].")
    start: int = Field(ge=0, description="Offset in Unicode code points.")
    end: int = Field(ge=1, description="Offset behind it, likewise.")
    tokens: list[int] = Field(description="Number of its first token, and of that behind its last.")
    contributions: dict[str, float] = Field(description="The sum over its tokens, for each label.")
    means: dict[str, float] = Field(description="The mean over its tokens, likewise.")


class Part(BaseModel):
    """A word, a pair or triple of words, or a piece of an unknown word, and what it added."""

    kind: Literal["word", "pair", "triple", "ngram"]
    text: str = Field(description="inputs[i][start:end].")
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    edge: Literal["start", "end"] | None = Field(
        description="The edge of the text that a pair of one word, or a triple of two, is with."
    )
    tokens: list[int] = Field(description="Numbers of the tokens that were credited.")
    contributions: dict[str, float] = Field(description="What it added to the logit of each label.")


class ChangedToken(BaseModel):
    """A token, word or sentence that is left out, or a token or word that is replaced."""

    token: int = Field(ge=0, description="Its number, among those of its kind.")
    start: int = Field(ge=0)
    end: int = Field(ge=1)
    text: str = Field(description="inputs[i][start:end].")
    by: str | None = Field(description="What stands in its place; null for nothing.")


class OtherAnswer(BaseModel):
    """The answer after a change."""

    label: str = Field(description="What is answered then.")
    score: Score = Field(description="The probability of that.")
    before: str = Field(description="The label before.")
    before_score: Score = Field(description="Its probability after the change.")


class Change(OtherAnswer):
    """A change of the text that changes the answer."""

    changes: list[ChangedToken]
    text: str = Field(description="The changed text, as far as it is read.")
    smallest: bool = Field(description="Whether no smaller one was found among all that were tried.")


class ChangedColumn(OtherAnswer):
    """Another value of a column beside the text that changes the answer."""

    column: str
    value: str = Field(description="What stands in it; empty where it is missing.")
    by: str = Field(description="What would change the answer; of several values the one that does it most surely.")


class CounterfactualSearch(BaseModel):
    """What would change the answer, and how it was searched for."""

    found: Change | None = Field(description="Null if there is none within the search.")
    tokens: int = Field(ge=0, description="How many tokens, or words, were left out by themselves.")
    asked: int = Field(ge=0, description="About how many texts the model was asked.")
    unit: Literal["token", "word", "sentence"] = Field(
        description="What was left out: words where tokens are letters; sentences where no few tokens or words change "
        "the answer, but these do."
    )
    columns: list[ChangedColumn] | SkipJsonSchema[None] = Field(
        None, description="Present if the model reads categories beside the text and another value changes the answer."
    )


class NodeOfTree(BaseModel):
    """A node of the label tree."""

    path: list[str] = Field(description="From the root down.")
    score: Score = Field(description="The sum of the probabilities of the labels at and below it.")


class Result(BaseModel):
    """The answer to one text."""

    label: str = Field(description="The most probable label.")
    score: Score = Field(description="Its calibrated probability.")
    labels: list[LabelScore] = Field(description="The labels asked for by `top_k`, best first.")
    decision: Literal["accept", "abstain"] = Field(
        description="`abstain` if the best score is below the threshold; where a text may have several labels, if none "
        "is assigned."
    )
    truncated: bool = Field(description="Whether the text is longer than the model reads; the rest was cut.")
    assigned: list[str] | SkipJsonSchema[None] = Field(
        None,
        description="Present if a text may have several labels, or none, which is the task `multi-label`: those that "
        "reach their thresholds, the most probable first, whatever `top_k` is. The scores then do not add up to 1.",
    )
    node: NodeOfTree | None = Field(
        None,
        description="Present if labels are paths of a tree, such as `group > job`: the deepest node that is sure, null "
        "if none is.",
    )
    runner_up: str | None = Field(
        None, description="Present if `explain` is true: the second most probable label, null if there is only one."
    )
    bias: dict[str, float] | SkipJsonSchema[None] = Field(
        None, description="Present if `explain` is true: the logits of the empty text."
    )
    logits: dict[str, float] | SkipJsonSchema[None] = Field(
        None,
        description="Present if `explain` is true: the logits of this text, before calibration. "
        "bias[label] + the sum of all contributions[label] is logits[label].",
    )
    completeness_error: float | SkipJsonSchema[None] = Field(
        None,
        ge=0,
        description="Present if `explain` is true: by how much that sum is off at most, over all labels; rounding.",
    )
    tokens: list[Token] | SkipJsonSchema[None] = Field(None, description="Present if `explain` is true.")
    columns: list[CellContribution] | SkipJsonSchema[None] = Field(
        None,
        description="Present if `explain` is true and the model reads columns beside the text: what each added to the "
        "logits, of a date its parts.",
    )
    evidence: Evidence | SkipJsonSchema[None] = Field(None, description="Present if `explain` asks for more than true.")
    unit: Literal["word", "phrase", "sentence"] | SkipJsonSchema[None] = Field(
        None, description="Present if `explain.unit` asks for one."
    )
    units: list[UnitOfText] | SkipJsonSchema[None] = Field(None, description="Present with `unit`: in reading order.")
    parts: list[Part] | SkipJsonSchema[None] = Field(
        None, description="Present if `explain.parts` is true: they add up to what the tokens added."
    )
    counterfactual: CounterfactualSearch | SkipJsonSchema[None] = Field(
        None, description="Present if `explain.counterfactual` is true."
    )
    support: list[SupportRow] | SkipJsonSchema[None] = Field(
        None,
        description="Present if `explain` is true and labels are prototypes: what the most probable label is made of "
        "for this text, the most weight first.",
    )


class Model(BaseModel):
    """The model that answered."""

    name: str = Field(description="As it is served: by default the file's name without its suffix.")
    version: str = Field(description="As the operator calls it; by default the beginning of the file's SHA-256.")
    format_version: int
    labels: int = Field(description="How many labels the model knows.")


def _example_token(text: str, start: int, attention: float, added: float) -> dict[str, Any]:
    return {
        "text": text,
        "start": start,
        "end": start + len(text),
        "attention": attention,
        "contributions": {"billing": added},
        "known": True,
    }


_ANSWER: Final[dict[str, Any]] = {
    "model": {"name": "tickets", "version": "9f2c41d07be3", "format_version": 1, "labels": 6},
    "results": [
        {
            "label": "billing",
            "score": 0.93,
            "labels": [{"label": "billing", "score": 0.93}],
            "decision": "accept",
            "truncated": False,
            "runner_up": "returns",
            "bias": {"billing": -0.04},
            "logits": {"billing": 3.3},
            "completeness_error": 2.4e-07,
            "tokens": [
                _example_token("My", 0, 0.08, 0.02),
                _example_token("card", 3, 0.31, 1.12),
                _example_token("was", 8, 0.05, 0.01),
                _example_token("charged", 12, 0.38, 1.64),
                _example_token("twice", 20, 0.18, 0.55),
            ],
        }
    ],
}
_ANSWER_OF_SEVERAL: Final[dict[str, Any]] = {
    "model": {"name": "topics", "version": "51b0c2ffa9d4", "format_version": 2, "labels": 9},
    "results": [
        {
            "label": "billing",
            "score": 0.93,
            "labels": [{"label": "billing", "score": 0.93}, {"label": "refund", "score": 0.71}],
            "decision": "accept",
            "truncated": False,
            "assigned": ["billing", "refund"],
        }
    ],
}


class ClassifyAnswer(BaseModel):
    """One result per text, in the order of the texts."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ANSWER, _ANSWER_OF_SEVERAL]})

    model: Model
    results: list[Result]
