"""Everything that can go wrong on the caller's side, as one small tree.

    TextclsError            caught by the command line and by the server; its text is one sentence for users
    ├── InputError          the input is wrong: a file, a column, a text, a request
    │   ├── NotFoundError   ... because it names something that is not there
    │   └── TooLargeError   ... because it is beyond a stated limit
    ├── ConfigError         an option, or options together, make no sense
    ├── ArtifactError       the model file is missing, damaged, not ours, or newer than this version reads
    ├── MissingExtraError   a part of the package is not installed; the text contains the command to type
    └── SurroundingsError   the environment prevents it: a port in use, a folder that does not exist

`exit_code` and `http_status` read the one table from error to exit code and to HTTP status.
"""

from typing import Final, Self


class TextclsError(Exception):
    """Base class of all errors whose text is meant for the caller.

    Examples:
        >>> try:
        ...     textcls.Classifier.load("missing.onnx")
        ... except textcls.TextclsError as error:
        ...     print(error)
        There is no model file missing.onnx.
    """


class InputError(TextclsError):
    """The input is wrong; the text says what, where, and what to do.

    Examples:
        >>> textcls.train(["late again"], ["delivery"], "new.onnx")
        Traceback (most recent call last):
        textcls.errors.InputError: The training rows have only the label 'delivery'; ...
    """


class NotFoundError(InputError):
    """The input names something that does not exist; the text says what does.

    Examples:
        >>> issubclass(textcls.NotFoundError, textcls.InputError)
        True
    """


class TooLargeError(InputError):
    """The input is beyond a limit; the text names the limit.

    Examples:
        >>> issubclass(textcls.TooLargeError, textcls.InputError)
        True
    """


class ConfigError(TextclsError):
    """An option is wrong, or two options do not go together.

    Examples:
        >>> textcls.train(["late again", "too much"], ["delivery", "billing"], "new.onnx", epochs=0)
        Traceback (most recent call last):
        textcls.errors.ConfigError: epochs must be at least 1, not 0.
    """


class ArtifactError(TextclsError):
    """The model file cannot be used.

    Examples:
        >>> textcls.Classifier.load("missing.onnx")
        Traceback (most recent call last):
        textcls.errors.ArtifactError: There is no model file missing.onnx.
    """


class MissingExtraError(TextclsError):
    """An optional part of the package is not installed.

    Examples:
        >>> textcls.MissingExtraError("textcls serve", "fastapi", "serve", "30 MB").extra
        'serve'
    """

    def __init__(self, what: str, package: str, extra: str, weight: str) -> None:
        self.what, self.package, self.extra, self.weight = what, package, extra, weight
        super().__init__(
            f"{what} needs the package {package!r}, which is not installed (about {weight}); "
            f'run: pip install "textcls[{extra}]"'
        )

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, str, str]]:
        # By default, unpickling would call the class with `args`, which contain the whole sentence.
        return type(self), (self.what, self.package, self.extra, self.weight)


class SurroundingsError(TextclsError):
    """Something in the environment prevents the work: a port, a folder, a permission.

    Examples:
        >>> textcls.train(["late again", "too much"], ["delivery", "billing"], "no/new.onnx")
        Traceback (most recent call last):
        textcls.errors.SurroundingsError: The folder ... does not exist; make it first, or choose another output.
    """


# (error, exit code, HTTP status), the most specific first. 2 is what click itself uses for a wrong call.
_TABLE: Final[tuple[tuple[type[TextclsError], int, int], ...]] = (
    (TooLargeError, 3, 413),
    (NotFoundError, 3, 404),
    (InputError, 3, 422),
    (ConfigError, 2, 422),
    (ArtifactError, 4, 503),
    (MissingExtraError, 5, 501),
    (SurroundingsError, 6, 503),
    (TextclsError, 1, 500),
)


def exit_code(error: TextclsError) -> int:
    """Return the exit code of the command line for `error`."""
    return next(code for kind, code, _ in _TABLE if isinstance(error, kind))


def http_status(error: TextclsError) -> int:
    """Return the HTTP status of the server for `error`."""
    return next(status for kind, _, status in _TABLE if isinstance(error, kind))
