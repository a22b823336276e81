"""A loaded model file: its ONNX graph in ONNX Runtime, and what it says of itself. Texts in, arrays out."""

import hashlib
import re
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from textcls._util import interrupts
from textcls.errors import ArtifactError, SurroundingsError
from textcls.model import artifact, sub_token_attribution, tokenizer
from textcls.model.artifact import ModelInfo
from textcls.model.columns import END_OF_CELLS, unpack
from textcls.model.model_file.contents import foreign
from textcls.model.sub_token_attribution import RowOutputs, SubTokenAttribution


class Graph:
    """The graph of a model file. Safe to share between threads.

    Attributes:
        session: what runs it.
        info: what the file says of itself.
        path: the path of the file, for messages.
        sha256: the SHA-256 of its content as it was loaded, in hexadecimal.
        bytes: how many these were.
    """

    def __init__(self, session: onnxruntime.InferenceSession, info: ModelInfo, path: Path, content: bytes) -> None:
        self.session, self.info, self.path = session, info, path
        self.sha256, self.bytes = hashlib.sha256(content).hexdigest(), len(content)
        self._outputs = {output.name for output in session.get_outputs()}
        # Without this ONNX Runtime computes the outputs that nobody asked for, too.
        self._options = onnxruntime.RunOptions()
        self._options.only_execute_path_to_fetches = True

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> "Graph":
        """Load the model file whose content is `data`; messages name it `path`.

        Raises:
            ArtifactError: it is damaged or not ours, or it is of a newer format.
        """
        session = _open_session(data, path)
        try:
            metadata = session.get_modelmeta().custom_metadata_map
        except UnicodeDecodeError as error:
            raise ArtifactError(
                f"{path} is damaged: its metadata is not UTF-8; train or copy the model again."
            ) from error
        return cls(session, ModelInfo.from_metadata(metadata, path), path, data)

    def run(self, texts: Sequence[str], names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return the outputs `names` (`textcls.model.artifact`) of texts that `read` has prepared, over all."""
        feed: dict[str, NDArray[Any]] = {}
        # A text alone is read from memory. Of several each would take as much as the longest, so strings are read.
        kind = str if len(texts) == 1 else object
        if columns := self.info.columns:
            cells, texts = zip(*(unpack(row, columns) for row in texts), strict=True) if texts else ((), ())
            feed[artifact.COLUMNS] = np.array(cells, kind).reshape(len(texts), -1)
        feed[artifact.INPUT] = np.array(texts, kind)
        # Where ONNX Runtime reads Python's strings, Python looks for signals, and what a handler raises there takes the
        # process down.
        with nullcontext() if kind is str else interrupts.held_back(*interrupts.ENDING):
            found = self.session.run(names, feed, self._options)
        return dict(zip(names, found, strict=True))

    def read(self, text: str) -> tuple[str, bool]:
        """Return what the graph needs of `text`, and whether there is more of it than is read.

        The graph makes a string of every token before it cuts, which of ten million characters takes 300 MB. One token
        more than is read tells it that the text goes on.
        """
        if self.info.columns and END_OF_CELLS in text:
            cells, _, alone = text.partition(END_OF_CELLS)
            shortened, more = self._read(alone)
            return cells + END_OF_CELLS + shortened, more
        return self._read(text)

    def _read(self, text: str) -> tuple[str, bool]:
        limit, cleaned = self.info.max_tokens, tokenizer.clean(text)
        if len(text) <= limit:
            return tokenizer.shortened(cleaned), False
        beyond = next(islice(tokenizer.token_spans(cleaned), limit, None), None)
        return tokenizer.shortened(cleaned if beyond is None else cleaned[: beyond[1]]), beyond is not None

    @property
    def has_rows(self) -> bool:
        """Whether the file says what its rows add, of which sub-token attributions are made."""
        return "rows" in self._outputs

    @property
    def has_pieces(self) -> bool:
        """Whether the file has rows of character n-grams, for words that it does not know."""
        return "ngram_rows" in self._outputs

    def rows(self, text: str, tokens: int) -> RowOutputs:
        """Return what the graph says of the rows of `text`, which has so many tokens. Needs `has_rows`."""
        names = [name for name in (*artifact.ROW_OUTPUTS, "known") if name in self._outputs]
        found = self.run([self.read(text)[0]], names)
        return RowOutputs(
            found["rows"][:, 0, :tokens],
            found.get("ngram_rows"),
            found["weights"][0, :tokens, :, 0],
            found["known"][0, :tokens],
        )

    def sub_token_attributions(self, text: str) -> list[SubTokenAttribution]:
        """Return what rows within each token of `text` contributed. Needs `has_rows`."""
        spans = tuple(tokenizer.token_spans(self.info.text_of(text), self.info.max_tokens))
        rows = self.rows(text, len(spans))
        return sub_token_attribution.split(rows, spans, self.info.labels, self.info.features, norm=self.info.norm)


def _open_session(data: bytes, path: Path) -> onnxruntime.InferenceSession:
    try:
        strange = foreign(data)
    except ValueError as error:
        raise _unreadable(path, data) from error
    if strange is not None:
        raise ArtifactError(f"{path} {strange}, as no model of textcls has or does; it is not opened.")
    options = onnxruntime.SessionOptions()
    # One small graph: a second thread costs more than it brings, and spinning threads starve their neighbours.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Texts come in all lengths; the arena would keep the memory of the longest for ever.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        # Kept for a change of providers, which nobody asks for; it is as large as the file.
        session._model_bytes = None
        return session
    except Exception as error:  # ONNX Runtime's exceptions have no common base but this one.
        if isinstance(error, MemoryError) or re.search("bad_alloc|Failed to allocate memory", str(error)):
            raise SurroundingsError(f"There is not enough memory to load {path}.") from error
        raise _unreadable(path, data) from error


def _unreadable(path: Path, data: bytes) -> ArtifactError:
    beginning = data[:1000]
    if beginning.startswith((b"PK", b"\xff\xfe", b"\xfe\xff")) or (beginning and min(beginning) >= ord("\t")):
        return ArtifactError(f"{path} is not a model but a table or a text: name the model first, and then the rows.")
    return ArtifactError(f"{path} is not a model that ONNX Runtime can read: it is damaged or not an ONNX file.")
