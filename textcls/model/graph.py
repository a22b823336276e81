"""A loaded model file: its ONNX graph in ONNX Runtime, and its metadata. Texts in, arrays out."""

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
        session: the ONNX Runtime session.
        info: the description of the model in the file.
        path: the path of the file, for messages.
        sha256: the SHA-256 of its content when it was loaded, in hexadecimal.
        bytes: the size of this content.
    """

    def __init__(self, session: onnxruntime.InferenceSession, info: ModelInfo, path: Path, content: bytes) -> None:
        self.session, self.info, self.path = session, info, path
        self.sha256, self.bytes = hashlib.sha256(content).hexdigest(), len(content)
        self._outputs = {output.name for output in session.get_outputs()}
        # Without this ONNX Runtime also computes outputs that were not requested.
        self._options = onnxruntime.RunOptions()
        self._options.only_execute_path_to_fetches = True

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> "Graph":
        """Load the model file whose content is `data`; messages name it `path`.

        Raises:
            ArtifactError: it is damaged, not a textcls model, or of a newer format.
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
        """Return the outputs `names` (`textcls.model.artifact`) for texts that `read` has prepared."""
        feed: dict[str, NDArray[Any]] = {}
        # A single text is passed as one block. With several, each would take as much as the longest: pass objects.
        kind = str if len(texts) == 1 else object
        if columns := self.info.columns:
            cells, texts = zip(*(unpack(row, columns) for row in texts), strict=True) if texts else ((), ())
            feed[artifact.COLUMNS] = np.array(cells, kind).reshape(len(texts), -1)
        feed[artifact.INPUT] = np.array(texts, kind)
        # While ONNX Runtime reads Python strings, Python may run signal handlers, and an exception raised there would
        # crash the process.
        with nullcontext() if kind is str else interrupts.held_back(*interrupts.ENDING):
            found = self.session.run(names, feed, self._options)
        return dict(zip(names, found, strict=True))

    def read(self, text: str) -> tuple[str, bool]:
        """Return the part of `text` that the graph needs, and whether the text is longer than what is read.

        The graph makes a string of every token before it cuts, which takes 300 MB for ten million characters. One token
        more than is read shows it that the text continues.
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
        """Whether the file returns what its rows add, as needed for sub-token attributions."""
        return "rows" in self._outputs

    @property
    def has_pieces(self) -> bool:
        """Whether the file has rows of character n-grams, for words that it does not know."""
        return "ngram_rows" in self._outputs

    def rows(self, text: str, tokens: int) -> RowOutputs:
        """Return the graph's outputs for the rows of `text`, which has `tokens` tokens. Needs `has_rows`."""
        names = [name for name in (*artifact.ROW_OUTPUTS, "known") if name in self._outputs]
        found = self.run([self.read(text)[0]], names)
        return RowOutputs(
            found["rows"][:, 0, :tokens],
            found.get("ngram_rows"),
            found["weights"][0, :tokens, :, 0],
            found["known"][0, :tokens],
        )

    def sub_token_attributions(self, text: str) -> list[SubTokenAttribution]:
        """Return what the rows of each token of `text` contributed. Needs `has_rows`."""
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
    # The graph is small: a second thread costs more than it gains, and spinning threads starve other processes.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Texts have all lengths; the arena would keep the memory of the longest one forever.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        # Kept for a change of providers, which is not used; it is as large as the file.
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
