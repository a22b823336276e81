"""What the service's own routes answer where nobody asks about texts: models, reloads, its state, errors."""

from typing import Literal

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from textcls.artifact import Task
from textcls.server.inference.schemas import Score


class ModelCard(BaseModel):
    """What a served model says of itself."""

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


class ChangedLabels(BaseModel):
    """A model whose set of labels is another than before."""

    model: str = Field(description="Its name.")
    added: list[str] = Field(description="The labels that the new file has and the old one had not.")
    removed: list[str] = Field(description="The labels that the old file had and the new one has not.")


class Reloaded(BaseModel):
    """What an exchange of the models came to."""

    generation: int = Field(description="The generation that is now served.")
    workers: int = Field(description="How many workers serve it.")
    changed_labels: list[ChangedLabels] = Field(description="The models that know other labels than before.")


class Health(BaseModel):
    """The state of the service."""

    status: Literal["live", "ready"]


class ErrorBody(BaseModel):
    """What is wrong, where, and what to do."""

    type: str = Field(examples=["invalid_request"])
    message: str = Field(examples=["top_k must be greater than or equal to 1."])


class ErrorAnswer(BaseModel):
    """The form of every error."""

    error: ErrorBody
