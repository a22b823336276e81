"""Read small text files whole: lists of words, prompts, names."""

from pathlib import Path

from textcls.errors import InputError


def read_text(path: Path, most: int, what: str = "The file") -> str:
    """Return the content of a text file in UTF-8 of at most `most` bytes; `what` it is, for messages.

    Raises:
        InputError: there is no such file, or it cannot be read, is larger, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise InputError(f"{what} {path} has more than {most:,} bytes; give a shorter one.")
        return data.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except OSError as error:
        raise InputError(f"{what} {path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{what} {path} is not UTF-8 (byte {error.start:,}); save it as UTF-8.") from error
