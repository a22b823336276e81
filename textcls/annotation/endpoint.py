"""A language model behind an address that speaks OpenAI's chat completions: hosted, vLLM, llama.cpp, Ollama.

The client is OpenAI's own, which retries with growing pauses and respects `Retry-After`. The size of a response is
limited before it is kept.
"""

import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final

import httpx2
import openai
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice

from textcls.annotation.journal import JournalEntry
from textcls.annotation.price import estimate
from textcls.annotation.probabilities import Token, mean, of_answer
from textcls.annotation.prompt import Prompt, RefusedError
from textcls.data.storage import is_url, without_secrets
from textcls.errors import ConfigError, InputError, SurroundingsError

KEY: Final = "OPENAI_API_KEY"
ADDRESS: Final = "OPENAI_BASE_URL"
_MOST_BYTES: Final = 4_000_000
# Most answers end after a few tokens; models that think before they answer need more, but not without limit.
_MOST_TOKENS: Final = 4096
# The most tokens that a server may report for an answer; a larger number is not credible as a cost.
_MOST_COUNTED: Final = 10_000_000
_TRIES: Final = 6
# The number of characters of a server's message that are shown.
_SHOWN: Final = 200
_ALTERNATIVES: Final = 20
_GOES_ON: Final = "What was answered is kept: the same command continues from there."
_UNCERTAIN: Final = (
    "The server returns no token probabilities: each answer counts as certain. With --samples 5 each text is "
    "answered five times, and the shares count."
)


def address(url: str | None) -> str:
    """Return the address of the server: the given one, or that in `ADDRESS`, or OpenAI's.

    Raises:
        ConfigError: it is not an address.
    """
    try:
        found = str(openai.OpenAI(api_key="none", base_url=url).base_url)
    except (openai.OpenAIError, httpx2.InvalidURL, ValueError) as error:
        raise ConfigError(f"{_shown(url)} is not an address of a server.") from error
    if not found.startswith(("http://", "https://")):
        raise ConfigError(f"{_shown(url)} is not an address of a server: it begins with http:// or https://.")
    return found


def _shown(url: str | None) -> str:
    """Return an invalid address as it may be shown, without what may be a key."""
    given = url or os.environ.get(ADDRESS, "")
    if not set(given) & set("@?#"):
        return given
    try:
        return without_secrets(given) if is_url(given) else given.rpartition("@")[2].partition("?")[0]
    except InputError:
        return f"{given.partition('://')[0]}://..."


class Endpoint:
    """Ask about one text at a time.

    Attributes:
        model: the server's name for the model.
        prompt: what is asked.
        samples: how many answers are requested; their mean counts.
        url: the URL of the server.
        notes: sentences on what was found out in the process.
        strange: the beginning of the last answer that names none of the labels.

    Raises:
        ConfigError: there is no key, or the key or the address cannot be used.
    """

    def __init__(self, url: str | None, model: str, prompt: Prompt, *, seconds: float, samples: int = 1) -> None:
        key = os.environ.get(KEY) or ("none" if url else None)
        if key is None:
            raise ConfigError(f"Set {KEY} to your key, or name a server of your own with --endpoint.")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(f"{KEY} holds what no key does: a space, a line break, or a letter beyond ASCII.")
        self.model, self.prompt, self.samples, self.notes, self.strange = model, prompt, samples, list[str](), ""
        # Options that not every server supports; they are dropped once that has been found.
        self._wished: dict[str, Any] = {"logprobs": True, "top_logprobs": _ALTERNATIVES}
        if samples > 1:
            self._wished = {"n": samples}
        self.url = address(url)
        http = openai.DefaultAsyncHttpxClient(event_hooks={"response": [_bound]})
        self._client = openai.AsyncOpenAI(
            api_key=key, base_url=self.url, timeout=seconds, max_retries=_TRIES, http_client=http
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def ask(self, text: str) -> JournalEntry:
        """Return the model's answer to a text.

        Raises:
            RefusedError: the server refuses to answer about this text.
            ConfigError: the server does not accept the key or the model.
            SurroundingsError: it does not answer, despite retries.
        """
        begun, completions = perf_counter(), list[ChatCompletion]()
        try:
            while sum(len(one.choices) for one in completions) < self.samples:
                completions.append(await self._said(text))
                _check_choices(completions[-1].choices)
            return self._answer(text, completions, perf_counter() - begun)
        except RefusedError as refusal:
            refusal.tokens = sum(self._spent(text, completions))
            raise
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            refused = RefusedError(f"the server refuses the request ({_status(error)}).")
            refused.tokens = sum(self._spent(text, completions))
            raise refused from error
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise ConfigError(f"The server refuses the key in {KEY} ({_status(error)}).") from error
        except openai.NotFoundError as error:
            shown = without_secrets(self.url)
            raise ConfigError(f"{shown} has no model {self.model!r}, or is another address (404).") from error
        except openai.APIStatusError as error:
            raise SurroundingsError(f"The server answered with {_status(error)}. {_GOES_ON}") from error
        except openai.APIConnectionError as error:
            shown = without_secrets(self.url)
            raise SurroundingsError(f"{shown} cannot be reached, or does not answer in time. {_GOES_ON}") from error
        except (openai.APIError, _TooLargeError, ValueError, TypeError, AttributeError, RecursionError) as error:
            # The client does not check that a response has the form that its types promise.
            raise SurroundingsError(
                f"The server gave no answer that can be read ({type(error).__name__}). {_GOES_ON}"
            ) from error

    async def _said(self, text: str) -> ChatCompletion:
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": self.prompt.messages(text),
            "response_format": self.prompt.response_format,
            "max_completion_tokens": _MOST_TOKENS,
        }
        if self.samples > 1:
            asked["temperature"] = 1
        wished = self._wished
        try:
            return await self._create(asked | wished)
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            if not wished:
                raise
            # Models that think before they answer return no token probabilities, for example.
            completion = await self._create(asked)
            self._wished = {}
            return completion

    async def _create(self, asked: dict[str, Any]) -> ChatCompletion:
        found: ChatCompletion = await self._client.chat.completions.create(**asked)
        return found

    def _answer(self, text: str, completions: Sequence[ChatCompletion], seconds: float) -> JournalEntry:
        found = [self._probabilities(choice) for one in completions for choice in one.choices[: self.samples]]
        named = [one for one in found if one is not None]
        read, written = self._spent(text, completions)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return JournalEntry(mean(named) if named else None, read, written, at, round(seconds, 3))

    def _spent(self, text: str, completions: Sequence[ChatCompletion]) -> tuple[int, int]:
        """Return the tokens read and written for some answers to a text, estimated if the server does not count."""
        guess, read, written = estimate(self.prompt, [text]), 0, 0
        for one in completions:
            read += _count(one.usage and one.usage.prompt_tokens) or guess.read
            written += _count(one.usage and one.usage.completion_tokens) or guess.written * len(one.choices)
        return read, written

    def _probabilities(self, choice: Choice) -> list[float] | None:
        tokens = _tokens(choice)
        content = choice.message.content or ""
        found = of_answer(content, tokens, self.prompt)
        if found is None:
            self.strange = content[:_SHOWN]
        if found is not None and not tokens and self.samples == 1 and _UNCERTAIN not in self.notes:
            self.notes.append(_UNCERTAIN)
        return found


def _status(error: openai.APIStatusError) -> str:
    """Return the status of a response with the server's message, without the key, which the message may repeat."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    if not isinstance(message, str) or not message.strip():
        return f"status {error.status_code}"
    key = os.environ.get(KEY)
    return f"status {error.status_code}: {(message.replace(key, '...') if key else message)[:_SHOWN]!r}"


def _check_choices(choices: Sequence[Choice]) -> None:
    """Refuse an answer that is cut off, or an error in its place: neither is permanent."""
    if not choices:
        raise SurroundingsError(f"The server gave no answer that can be read (it has no choices). {_GOES_ON}")
    if any(choice.finish_reason == "length" for choice in choices):
        raise RefusedError(f"the model did not come to an end within {_MOST_TOKENS:,} tokens.")


def _count(told: object) -> int:
    """Return the number of tokens that the server reports, 0 if that is not a number of tokens."""
    return told if type(told) is int and 0 < told <= _MOST_COUNTED else 0


def _tokens(choice: Choice) -> list[Token]:
    tokens = (choice.logprobs.content or ()) if choice.logprobs is not None else ()
    return [
        Token(_bytes(one), one.logprob, [(_bytes(other), other.logprob) for other in one.top_logprobs or ()])
        for one in tokens
    ]


def _bytes(token: Any) -> bytes:
    """Return the bytes of a token, which may be part of a character."""
    return bytes(token.bytes) if token.bytes is not None else str(token.token).encode()


class _TooLargeError(Exception):
    """A response is larger than any requested answer."""


async def _bound(response: httpx2.Response) -> None:
    """Limit the size of a response."""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > _MOST_BYTES:
                raise _TooLargeError
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
