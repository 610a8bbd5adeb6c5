# SPDX-License-Identifier: MIT
"""HTML reports with one look: a single file that opens without a network.

A report is a jinja2 template that extends `base.html` and fills its blocks:

    {% extends "base.html" %}
    {% block title %}Calibration of {{ cell }}{% endblock %}
    {% block content %}<h2>Checks</h2> ... {% endblock %}

Every value is escaped (autoescape), and a name that was not given is an error, not an empty string.
Classes of the style sheet: `subtitle`, `verdict pass|fail`, `tiles` > `tile` > `value` + `label`,
`number` (table cells), `failed` (table rows), `advice`, `pill pass|fail|muted`, `gallery`, `muted`.
"""

from __future__ import annotations

import base64
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined

STYLE = """
:root { color-scheme: light; --ink: #1d2430; --muted: #667085; --line: #e4e7ec; --soft: #f7f8fa;
  --pass: #1f7a4d; --pass-soft: #e7f5ed; --fail: #b3261e; --fail-soft: #fdeceb; --accent: #2b5c8a; }
* { box-sizing: border-box; }
body { font: 15px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--ink);
  background: var(--soft); margin: 0; }
main { max-width: 1080px; margin: 2rem auto; padding: 2rem 2.4rem; background: #fff;
  border: 1px solid var(--line); border-radius: 12px; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line); }
p { margin: .5rem 0; max-width: 75ch; }
.subtitle, .muted, figcaption { color: var(--muted); }
.subtitle { margin: 0 0 1.2rem; }
.verdict { padding: .7rem 1.1rem; border-radius: 8px; color: #fff; font-size: 1.35rem;
  font-weight: 700; letter-spacing: .03em; margin: 1rem 0; }
.verdict.pass { background: var(--pass); } .verdict.fail { background: var(--fail); }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0; }
.tile { flex: 1 1 150px; padding: .8rem 1rem; background: var(--soft);
  border: 1px solid var(--line); border-radius: 8px; }
.tile .value { font-size: 1.55rem; font-weight: 650; line-height: 1.2; }
.tile .label { color: var(--muted); font-size: .86rem; }
table { border-collapse: collapse; width: 100%; margin: .7rem 0; }
th, td { padding: .38rem .7rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th { color: var(--muted); font-size: .84rem; font-weight: 600; border-bottom-width: 2px; }
tbody tr:hover td { background: var(--soft); }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
tr.failed td, tbody tr.failed:hover td { background: var(--fail-soft); }
.advice { color: var(--fail); font-size: .92rem; }
.pill { display: inline-block; padding: 0 .6em; border-radius: 1em; font-size: .86rem;
  font-weight: 600; white-space: nowrap; }
.pill.pass { color: var(--pass); background: var(--pass-soft); }
.pill.fail { color: var(--fail); background: var(--fail-soft); }
.pill.muted { color: var(--muted); background: var(--soft); }
figure { margin: .8rem 0; } figcaption { font-size: .9rem; margin-top: .25rem; }
img { max-width: 100%; height: auto; border-radius: 4px; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(290px, 1fr));
  gap: 1rem; }
.gallery figure { margin: 0; } .gallery img { width: 100%; border: 1px solid var(--line); }
details { border: 1px solid var(--line); border-radius: 8px; margin: .45rem 0;
  padding: .45rem .9rem; }
summary { cursor: pointer; }
ul { padding-left: 1.2rem; } li { margin: .2rem 0; }
@media print { body { background: #fff; } main { border: 0; margin: 0; padding: 0; } }
"""

_BASE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{% block title required %}{% endblock %}</title>
<style>{{ style | safe }}</style>
</head>
<body><main>
<h1>{{ self.title() }}</h1>
{% block content required %}{% endblock %}
</main></body>
</html>
"""


def render_report(template: str, **values: Any) -> str:
    """The page of a template that extends `base.html`.

    Raises:
        jinja2.TemplateError: the template is wrong, or uses a name that was not given.
    """
    environment = Environment(
        loader=DictLoader({"base.html": _BASE}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.from_string(template).render(style=STYLE, **values)


def data_uri(data: bytes, media_type: str) -> str:
    """A file as an address inside the page, e.g. of an image: `data_uri(png, "image/png")`."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
