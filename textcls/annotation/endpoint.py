"""A language model behind an address that speaks OpenAI's chat completions: hosted, vLLM, llama.cpp, Ollama.

The client is OpenAI's own, which tries again with growing pauses and heeds `Retry-After`. What comes back is bounded
before it is kept.
"""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final, Self

import httpx2
import openai
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice

from textcls.annotation.journal import Answer
from textcls.annotation.probabilities import Token, certain, label_of, of_tokens
from textcls.annotation.prompt import Prompt
from textcls.errors import ConfigError, SurroundingsError

KEY: Final = "OPENAI_API_KEY"
_MOST_BYTES: Final = 4_000_000
# A label's name, with room for the object around it; a character may be several tokens.
_TOKENS_BESIDE, _TOKENS_A_CHARACTER = 32, 2
_TRIES: Final = 6
_ALTERNATIVES: Final = 20


class Endpoint:
    """Asks about one text at a time.

    Attributes:
        notes: what was found out on the way and is worth a sentence.
    """

    def __init__(self, url: str | None, model: str, prompt: Prompt, *, seconds: float) -> None:
        key = os.environ.get(KEY) or ("none" if url else None)
        if key is None:
            raise ConfigError(f"Set {KEY} to your key, or name a server of your own with --endpoint.")
        self.model, self.notes = model, list[str]()
        self._prompt = prompt
        self._logprobs: dict[str, Any] = {"logprobs": True, "top_logprobs": _ALTERNATIVES}
        longest = max(len(name) for name in prompt.names)
        self._most_tokens = _TOKENS_BESIDE + _TOKENS_A_CHARACTER * longest
        if url is not None and not url.startswith(("http://", "https://")):
            raise ConfigError(f"{url} is no address of a server: it begins with http:// or https://.")
        http = openai.DefaultAsyncHttpxClient(transport=_Bounded())
        self._client = openai.AsyncOpenAI(
            api_key=key, base_url=url, timeout=seconds, max_retries=_TRIES, http_client=http
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def ask(self, text: str) -> Answer:
        """Return what the model says of a text.

        Raises:
            ConfigError: the server knows neither key nor model, or not this way of asking.
            SurroundingsError: it does not answer, however often it is asked.
        """
        try:
            return self._answer(await self._said(text))
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise ConfigError(f"The server refuses the key in {KEY} (status {error.status_code}).") from error
        except openai.NotFoundError as error:
            raise ConfigError(f"The server has no model {self.model!r}, or nothing at this address (404).") from error
        except openai.APIStatusError as error:
            raise SurroundingsError(
                f"The server answered with status {error.status_code}, {_TRIES + 1} times where that may help. What "
                "was answered is kept: the same command goes on from there."
            ) from error
        except (openai.APIError, _TooLargeError, ValueError, TypeError, AttributeError) as error:
            # The client does not look whether what it was sent has the form that its types promise.
            raise SurroundingsError(
                f"The server gave no answer that can be read ({type(error).__name__}). What was answered is kept: the "
                "same command goes on from there."
            ) from error

    async def _said(self, text: str) -> ChatCompletion:
        asked: Any = {
            "model": self.model,
            "messages": self._prompt.messages(text),
            "response_format": self._prompt.response_format,
            "max_completion_tokens": self._most_tokens,
        }
        logprobs = self._logprobs
        try:
            return await self._create(asked | logprobs)
        except openai.BadRequestError:
            if not logprobs:
                raise
            # Models that think before they answer have none.
            said = await self._create(asked)
            if self._logprobs:
                self._logprobs = {}
                self.notes.append("The server tells no probabilities of tokens: each answer counts as certain.")
            return said

    async def _create(self, asked: Any) -> ChatCompletion:
        found: ChatCompletion = await self._client.chat.completions.create(**asked)
        return found

    def _answer(self, said: ChatCompletion) -> Answer:
        choice = said.choices[0] if said.choices else None
        content = (choice.message.content or "") if choice is not None else ""
        label, names = label_of(content, self._prompt.names), self._prompt.names
        probabilities = None
        if label is not None and choice is not None:
            tokens = _tokens(choice)
            probabilities = of_tokens(label, tokens, names) if tokens else certain(label, names)
        usage = said.usage
        read, written = (usage.prompt_tokens, usage.completion_tokens) if usage is not None else (0, 0)
        return Answer(probabilities, read, written, datetime.now(UTC).isoformat(timespec="seconds"))


def _tokens(choice: Choice) -> list[Token]:
    told = (choice.logprobs.content or ()) if choice.logprobs is not None else ()
    return [Token(one.token, one.logprob, [(other.token, other.logprob) for other in one.top_logprobs]) for one in told]


class _TooLargeError(Exception):
    """An answer has more bytes than any that was asked for."""


class _Bounded(httpx2.AsyncHTTPTransport):
    """Hands on no more of an answer than it may have."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream)
        return response


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
