"""The gateway's description as a page that needs nothing else."""

from functools import cache
from html import escape
from typing import Any

from octopis.gateway.description.openapi import OPERATIONS, Operation, document, id_of
from octopis.gateway.problems import CONTENT_TYPE

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code { font: 14px ui-monospace, monospace; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #8886; }
.method { display: inline-block; min-width: 3.5rem; font-weight: 700; }
td, th { text-align: left; vertical-align: top; padding: .2rem 1rem .2rem 0; }
"""


@cache
def docs_page() -> str:
    """Return the page."""
    whole = document()
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        '<link rel="icon" href="/favicon.ico">',
        f"<title>OctopiS gateway</title><style>{_STYLE}</style><h1>OctopiS gateway</h1>",
        f"<p>{escape(whole['info']['description'])} Errors are {CONTENT_TYPE}: they say what, "
        'where and what to do. For programs: <a href="/openapi.json">openapi.json</a>.</p>',
        "<nav><ul>",
    ]
    parts += map(_line, OPERATIONS)
    parts.append("</ul></nav><main>")
    parts += map(_section, OPERATIONS)
    parts.append("<h2>Documents</h2>")
    parts += [_schema(name, each) for name, each in whole["components"]["schemas"].items()]
    return "".join((*parts, "</main></html>"))


def _line(operation: Operation) -> str:
    return (
        f'<li><a href="#{id_of(operation)}"><code><span class="method">'
        f"{operation.method.upper()}</span> {escape(operation.path)}</code></a> "
        f"{escape(operation.summary)}</li>"
    )


def _section(operation: Operation) -> str:
    found = document()["paths"][operation.path][operation.method]
    parts = [
        f'<h2 id="{id_of(operation)}"><code>{operation.method.upper()} '
        f"{escape(operation.path)}</code></h2><p>{escape(operation.summary)}. "
        f"{escape(operation.details)}</p>"
    ]
    if operation.parameters:
        rows = "".join(
            f"<tr><td><code>{escape(each.name)}</code> ({each.where})</td>"
            f"<td>{escape(each.what)}</td></tr>"
            for each in operation.parameters
        )
        parts.append(f"<table><tr><th>Parameter</th><th></th></tr>{rows}</table>")
    body = found.get("requestBody", {}).get("content", {})
    parts += [
        f"<p>Takes <code>{escape(c)}</code>: {_type(s['schema'])}</p>" for c, s in body.items()
    ]
    answer = found["responses"][str(operation.status)].get("content", {})
    parts += [
        f"<p>{operation.status} <code>{escape(content)}</code>: {_type(each['schema'])}</p>"
        for content, each in answer.items()
    ]
    return "".join(parts)


def _schema(name: str, schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(key)}</code></td><td>{_type(value)}</td></tr>"
        for key, value in schema.get("properties", {}).items()
    )
    about = escape(schema.get("description", ""))
    return f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{about}</p><table>{rows}</table>'


def _type(schema: dict[str, Any]) -> str:
    """Return a schema in a few words, with links to those that have names."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {_type(schema['items'])}" if schema.get("items") else "array"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return escape(str(schema.get("type", "anything")))
