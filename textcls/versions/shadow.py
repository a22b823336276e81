"""Which model may answer silently beside which."""

from textcls.model.artifact import ModelInfo


def shadow_problem(promoted: ModelInfo, shadow: ModelInfo) -> str | None:
    """Return why what the two answer cannot be compared, as a sentence; None if it can. Labels may be others."""
    if promoted.task != shadow.task:
        return f"It is a {shadow.task} model, and the promoted one is a {promoted.task} one."
    columns = promoted.text_columns, shadow.text_columns
    # A model of one column takes the text as it is, whatever that column was called.
    if columns[0] != columns[1] and max(map(len, columns)) > 1:
        return f"It was trained on {', '.join(columns[1])}, and the promoted one on {', '.join(columns[0])}."
    return None
