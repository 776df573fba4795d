"""Schemas of what is asked and answered, as JSON Schema 2020-12: those that several operations share."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def array(items: Schema, **more: Any) -> Schema:
    """A list of these."""
    return {"type": "array", "items": items, **more}


def record(required: dict[str, Schema] | None = None, optional: dict[str, Schema] | None = None, **more: Any) -> Schema:
    """An object with these properties."""
    needed = {} if not required else {"required": list(required)}
    return {"type": "object", **needed, "properties": {**(required or {}), **(optional or {})}, **more}


TEXT: Schema = {"type": "string", "description": "the text; of a model with fields, its first line is the first field"}
LIMIT: Schema = {"type": "integer", "minimum": 0, "default": 10, "description": "at most so many results"}
THRESHOLD: Schema = {
    "type": "number",
    "minimum": 0,
    "maximum": 1,
    "default": 0,
    "description": "results of a lower score are left out",
}
LANGUAGE: Schema = {"type": "string", "description": "of the labels' names, such as de"}
URI: Schema = {"type": "string", "description": "what identifies the label", "examples": ["gnd:4137187-2"]}
RARITY: Schema = {"type": "string", "enum": ["head", "torso", "tail", "unseen"]}
NOTATION: Schema = {"type": ["string", "null"]}
FIELDS: Schema = {
    "type": "object",
    "additionalProperties": STRING,
    "minProperties": 1,
    "description": "the text by the names of its fields, in place of text",
}

SUGGESTION = record({"uri": URI, "label": STRING, "score": NUMBER}, {"notation": NOTATION})
RESULTS = record({"results": array(SUGGESTION)})
PROBLEM = record({"title": STRING, "status": INTEGER, "detail": STRING}, {"type": STRING})
