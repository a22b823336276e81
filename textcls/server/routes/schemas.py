"""The bodies of the service's own routes that are not about texts: models, reloads, state, errors."""

from typing import Literal

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from textcls.model.artifact import Task
from textcls.model.columns import Kind
from textcls.server.inference.schemas import Score


class ModelColumn(BaseModel):
    """A column beside the text that a model reads."""

    name: str
    kind: Kind = Field(description="Whether it holds categories, numbers or dates.")
    values: list[str] = Field(description="Of a category: the values of the training, the most frequent first.")
    knots: list[float] = Field(
        description="Of a number, and of a date in days since 1970: between two of them what it adds is a line."
    )
    date_format: str | None = Field(description="How dates are written, unless as ISO 8601 says; null: only so.")


class ModelCard(BaseModel):
    """The description of a served model."""

    name: str
    version: str
    sha256: str = Field(description="Of the model's file.")
    default: bool = Field(description="Whether it answers requests that name no model.")
    labels: list[str]
    task: Task = Field(description="Whether a text has one label, or may have several, or none.")
    format_version: int
    threshold: Score | None = Field(
        description="Score below which the decision is `abstain`; null never abstains. Of several labels a text: the "
        "score from which on each is assigned; null: `thresholds`."
    )
    max_tokens: int = Field(description="Tokens of a text that are read.")
    text_columns: list[str] = Field(
        description="The columns that the texts were trained from. Of several, a text is an object with all of them."
    )
    columns: list[ModelColumn] | SkipJsonSchema[None] = Field(
        default=None,
        description="Present if the model reads columns beside the text: a text is then an object with them, too; "
        "what is not there is missing.",
    )
    example: str | SkipJsonSchema[None] = Field(
        default=None, description="Present if one was given in training: an example of the texts that the model is for."
    )
    temperature: float = Field(
        description="What the logits are divided by to calibrate the scores; of several labels a text these are "
        "calibrated by `scale` and `shift`, and this is 1."
    )
    scale: dict[str, float] | SkipJsonSchema[None] = Field(
        default=None,
        description="Present if the task is `multi-label`: the score of each label is sigmoid(scale * logit + shift).",
    )
    shift: dict[str, float] | SkipJsonSchema[None] = Field(
        default=None, description="Present if the task is `multi-label`, likewise."
    )
    thresholds: dict[str, Score] | SkipJsonSchema[None] = Field(
        default=None,
        description="Present if the task is `multi-label`: the score from which on each label is assigned.",
    )


class Models(BaseModel):
    """The models served."""

    generation: int = Field(description="Counts how often the models were exchanged since the start.")
    models: list[ModelCard]


class Changed(BaseModel):
    """A model whose labels, columns or task have changed, or which was added, removed or made the default."""

    model: str = Field(description="Its name.")
    added: list[str] = Field(description="Those that the new file has and the old one had not.")
    removed: list[str] = Field(description="Those that the old file had and the new one has not.")


class Reloaded(BaseModel):
    """The result of a reload."""

    generation: int = Field(description="The generation that is now served.")
    workers: int = Field(description="How many workers serve it.")
    changed_labels: list[Changed] = Field(description="The models that know other labels than before.")
    changed_columns: list[Changed] = Field(description="The models that read other columns of a row than before.")
    changed_tasks: list[Changed] = Field(description="The models that give one label where they gave several, or back.")
    changed_models: list[Changed] = Field(description="The models that are gone, and whether another is the default.")


class Health(BaseModel):
    """The state of the service."""

    status: Literal["live", "ready"]


class ErrorBody(BaseModel):
    """What is wrong, where, and what to do about it."""

    type: str = Field(examples=["invalid_request"])
    message: str = Field(examples=["top_k must be greater than or equal to 1."])


class ErrorAnswer(BaseModel):
    """The form of every error."""

    error: ErrorBody
