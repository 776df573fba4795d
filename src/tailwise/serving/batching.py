"""Texts of different requests answered together: one call of the model for all that wait, in a bounded pool.

A model's call has a fixed cost that is many times that of one more text. While a batch is worked on, others wait and
become the next one; under load a batch waits a few milliseconds more for company, and never where nobody else is there.
Long texts have a thread of their own, so that they do not hold up short ones.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from tailwise.data.texts import Texts
from tailwise.serving.problems import overloaded
from tailwise.serving.served import Served
from tailwise.topk import TopK

Text = str | dict[str, str]
"""A text, or its fields."""

LONG = 100_000
"""Characters from which on a text is long."""
_DEEP = 128
"""How many labels most ask for at most; whoever asks for more is answered apart."""


class Question(NamedTuple):
    """What one request asks a model: the ``k`` best labels of a text."""

    served: Served
    text: Text
    k: int

    @property
    def group(self) -> tuple[Any, ...]:
        """Questions of one group can be answered by one call."""
        fields = None if isinstance(self.text, str) else tuple(self.text)
        return id(self.served), fields, self.k if self.k > _DEEP else 0


class Ranking(NamedTuple):
    """The best labels of one text, as columns, with their scores."""

    labels: np.ndarray
    scores: np.ndarray


class Batcher:
    """Answers questions in batches, those about short texts and those about long ones apart."""

    def __init__(
        self,
        *,
        max_waiting: int,
        max_batch: int,
        window: float,
        on_batch: Callable[[int], Any] = lambda size: None,
    ) -> None:
        self.max_waiting = max_waiting
        self._short = Lane("short", max_batch, window, on_batch)
        self._long = Lane("long", 1, 0.0, on_batch)

    @property
    def waiting(self) -> int:
        """How many questions wait."""
        return len(self._short.waiting) + len(self._long.waiting)

    async def ask(self, questions: list[Question]) -> list[Ranking]:
        """The rankings, in order; refused whole where there is no room for all."""
        if self.waiting + len(questions) > self.max_waiting:
            raise overloaded(f"{self.waiting} texts are waiting already; try again in a second")
        asked = [self._lane(one).ask(one) for one in questions]
        return [await asked[0]] if len(asked) == 1 else list(await asyncio.gather(*asked))

    def _lane(self, question: Question) -> Lane:
        text = question.text
        size = len(text) if isinstance(text, str) else sum(map(len, text.values()))
        return self._long if size >= LONG else self._short

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns that takes longer, such as an explanation: in the thread of long texts."""
        return await self._long.run(function, *arguments)

    def close(self) -> None:
        """End the threads when their work is done."""
        for lane in (self._short, self._long):
            lane.pool.shutdown(wait=True)


class Lane:
    """One thread and the questions that wait for it."""

    def __init__(self, name: str, max_batch: int, window: float, on_batch: Callable[[int], Any]) -> None:
        self.pool = ThreadPoolExecutor(1, thread_name_prefix=f"serving-{name}")
        self.waiting: deque[tuple[Question, asyncio.Future[Ranking]]] = deque()
        self._max_batch, self._window, self._on_batch = max_batch, window, on_batch
        self._expected = 1
        self._enough = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    def ask(self, question: Question) -> asyncio.Future[Ranking]:
        """The answer that is to come, together with others."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Ranking] = loop.create_future()
        self.waiting.append((question, future))
        if len(self.waiting) >= min(self._expected, self._max_batch):
            self._enough.set()
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work_on())
        return future

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns, in this thread."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, function, *arguments)

    async def _work_on(self) -> None:
        """Answer as long as anybody waits; what breaks here is told to all who wait, or they would wait for ever."""
        try:
            await self._work()
        except Exception as error:
            while self.waiting:
                future = self.waiting.popleft()[1]
                if not future.done():
                    future.set_exception(error)

    async def _work(self) -> None:
        while self.waiting:
            if self._window and len(self.waiting) < min(self._expected, self._max_batch):
                self._enough.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._enough.wait(), self._window)
            batch = self._take()
            if not batch:
                continue
            self._on_batch(len(batch))
            questions = [question for question, _ in batch]
            answers = await self.run(_answer, questions)
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
            # Those who got their answers may ask again: as many are worth waiting for.
            self._expected = len(batch) + len(self.waiting)

    def _take(self) -> list[tuple[Question, asyncio.Future[Ranking]]]:
        """The longest waiting question and all others that one call answers with it; cancelled ones are dropped."""
        while self.waiting and self.waiting[0][1].done():
            self.waiting.popleft()
        if not self.waiting:
            return []
        group = self.waiting[0][0].group
        taken: list[Any] = []
        left: list[Any] = []
        while self.waiting and len(taken) < self._max_batch:
            entry = self.waiting.popleft()
            if entry[1].done():
                continue
            (taken if entry[0].group == group else left).append(entry)
        self.waiting.extendleft(reversed(left))
        return taken


def _answer(questions: list[Question]) -> list[Ranking | Exception]:
    """The answers of one call; where it fails, each question is asked alone, so that one cannot spoil the others'."""
    try:
        return list(_rank(questions))
    except Exception as error:
        if len(questions) == 1:
            return [error]
        return [answer for question in questions for answer in _answer([question])]


def _rank(questions: list[Question]) -> list[Ranking]:
    served = questions[0].served
    # The best k are the first of the best k + 1: everybody gets the beginning of what most was asked for.
    top: TopK = served.tagger.predict_topk(
        rows_of([question.text for question in questions]), max(q.k for q in questions)
    )
    rankings = []
    for row, question in enumerate(questions):
        labels, scores = top.labels[row, : question.k], top.scores[row, : question.k]
        rankings.append(Ranking(labels[labels >= 0], scores[labels >= 0]))
    return rankings


def rows_of(texts: list[Any]) -> Any:
    """Texts of one group as models take them."""
    if isinstance(texts[0], str):
        return texts
    return Texts({name: [text[name] for text in texts] for name in texts[0]})
