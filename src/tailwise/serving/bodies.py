"""Requests' bodies, read within bounds of size and time, as JSON or as the fields of a form."""

from __future__ import annotations

import asyncio
import json
import math
import re
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from tailwise.serving.problems import Problem

JSON = "application/json"
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
_MOST_FIELDS = 1000
_PATIENCE = 4
"""How many times the largest body is read before a connection is closed on whoever sends it."""
_LARGE = 200_000
"""Bytes from which on parsing would hold up others, and goes to a thread."""


async def read_bytes(request: Request, most: int, seconds: float) -> bytes:
    """The whole body; 413 where it is larger than ``most``, 408 where it takes longer than ``seconds``.

    What is too large is read to its end where that is near, and forgotten: most clients send all before they listen.
    """
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > _PATIENCE * most:
        raise _too_large(most)
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > _PATIENCE * most:
                    break
                if size <= most:
                    parts.append(part)
                else:
                    parts.clear()
    except TimeoutError:
        raise Problem(
            408, f"the request did not arrive within {seconds:g} seconds", headers={"Connection": "close"}
        ) from None
    if size > most:
        raise _too_large(most)
    return b"".join(parts)


def _too_large(most: int) -> Problem:
    return Problem(413, f"the body has more than {most:,} bytes", headers={"Connection": "close"})


def media_type(request: Request) -> str:
    """What the body is said to be, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, schemas: dict[str, Any], most: int, seconds: float) -> Any:
    """The body as its media type has it, one of those that ``schemas`` has a schema for."""
    kind = media_type(request)
    if kind not in schemas:
        # Annif takes what does not say what it is for a form, or for JSON where there is no form.
        if kind:
            raise Problem(415, f"Content-Type {kind!r} is none of {', '.join(schemas)}")
        kind = next(iter(schemas))
    body = await read_bytes(request, most, seconds)
    if kind == JSON:
        return await _maybe_apart(parse_json, body)
    if kind == MULTIPART:
        return await _parse_multipart(request, body, schemas[kind])
    return as_schema(await _maybe_apart(_parse_urlencoded, body), schemas[kind])


async def _maybe_apart(parse: Any, body: bytes) -> Any:
    return parse(body) if len(body) < _LARGE else await asyncio.to_thread(parse, body)


def parse_json(body: bytes) -> Any:
    """JSON in UTF-8 as it is defined: no NaN, no half of a surrogate pair."""
    try:
        text = body.decode("utf-8")
        found = json.loads(text, parse_constant=_refuse_constant)
        # An escape may name half a pair, which is no text.
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(400, f"the body is not UTF-8: {error.reason} at byte {error.start:,}") from None
    except UnicodeEncodeError:
        raise Problem(400, "the body has half of a surrogate pair, which is no character") from None
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"the body is not JSON: {error or 'it is too deep'}") from None
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _parse_urlencoded(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except UnicodeDecodeError as error:
        raise Problem(400, f"the form is not URL-encoded UTF-8: {error.reason}") from None
    except ValueError:
        raise Problem(400, f"the form has more than {_MOST_FIELDS} fields") from None
    return dict(pairs)


async def _parse_multipart(request: Request, body: bytes, schema: Any) -> dict[str, Any]:
    async def whole() -> Any:
        yield body

    try:
        parser = MultiPartParser(request.headers, whole(), max_fields=_MOST_FIELDS, max_part_size=len(body) + 1)
        form = await parser.parse()
        found = {}
        for name, value in form.multi_items():
            found[name] = (await value.read()).decode("utf-8") if isinstance(value, UploadFile) else value
    except (MultiPartException, KeyError) as error:
        raise Problem(400, f"the form is not multipart/form-data: {getattr(error, 'message', error)}") from None
    except UnicodeDecodeError as error:
        raise Problem(400, f"the form has a file that is not UTF-8: {error.reason}") from None
    return as_schema(found, schema)


def as_schema(form: dict[str, str], schema: dict[str, Any]) -> dict[str, Any]:
    """The fields of a form, or of a query, as the numbers that the schema says they are; what is none stays text.

    >>> as_schema({"limit": "5", "text": "7"}, {"properties": {"limit": {"type": "integer"}}})
    {'limit': 5, 'text': '7'}
    """
    return {name: _as(value, schema["properties"].get(name, {}).get("type")) for name, value in form.items()}


def _as(value: str, kind: str | None) -> Any:
    if kind == "integer" and re.fullmatch(r"[+-]?[0-9]{1,18}", value):
        return int(value)
    if kind == "number" and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value):
        number = float(value)
        return number if math.isfinite(number) else value
    return value
