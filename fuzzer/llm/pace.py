"""How fast an endpoint writes, and how much of it can be asked within the time of one request.

A small model on the cores of the campaign writes a few tokens a second: a long answer, or a second one beside it,
would always be cut off by the clock.
"""

from __future__ import annotations

from collections.abc import Callable

_LEAST = 300  # tokens: a shorter answer holds no program
_MARGIN = 0.4  # share of a request's time that an answer should take at the pace seen; the prompt is read in the rest
_SMOOTH = 0.5


class Pace:
    """Tokens of answers a second, from what requests took."""

    def __init__(self, timeout: Callable[[], float]) -> None:
        """``timeout``: seconds of one request."""
        self._timeout = timeout
        self.tokens_per_second: float | None = None

    def answered(self, tokens: int, seconds: float) -> None:
        """A whole request: reading the prompt counts, so that short answers make the pace look slower, never faster."""
        if tokens <= 0 or seconds <= 0:
            return
        seen, known = tokens / seconds, self.tokens_per_second
        self.tokens_per_second = seen if known is None else known + _SMOOTH * (seen - known)

    def timed_out(self, tokens: int) -> None:
        """So many tokens were too many."""
        most = 0.5 * tokens / self._timeout()
        self.tokens_per_second = min(most, self.tokens_per_second or most)

    def affordable(self, tokens: int) -> int:
        """Of so many tokens, those that fit into one request; at least enough for a small program."""
        if self.tokens_per_second is None:
            return tokens
        return min(tokens, max(_LEAST, int(_MARGIN * self._timeout() * self.tokens_per_second)))

    def is_slow(self, tokens: int) -> bool:
        """Would so many tokens not fit? Then two requests at once would only slow each other."""
        return self.affordable(tokens) < tokens


__all__ = ["Pace"]
