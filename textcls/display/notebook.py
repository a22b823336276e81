"""What notebooks show of an answer and of an explanation: they ask an object for `_repr_html_`.

Both classes stand below what draws them, so they are given the method from here, when `textcls` is imported.
"""

from textcls.model.explanation import Explanation
from textcls.model.prediction import Prediction


def register() -> None:
    """Let notebooks show answers and explanations as HTML."""
    Prediction._repr_html_ = _prediction
    Explanation._repr_html_ = _explanation


def _prediction(answer: Prediction) -> str:
    from textcls.display.html.explanation import prediction_fragment

    return prediction_fragment(answer)


def _explanation(explanation: Explanation) -> str:
    from textcls.display.html.explanation import explanation_fragment

    return explanation_fragment(explanation)
