"""Results that notebooks show as pages."""

from textcls._util.optional_dependencies import above


class InNotebooks:
    """A result that a notebook shows as the commands do."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(above("textcls.display.notebook:page_of")(self))
