"""Files of answers that tests open."""

from collections.abc import Callable

from textcls.labelling.answers import AnnotationsFile

Open = Callable[..., AnnotationsFile]
