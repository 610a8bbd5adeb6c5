# SPDX-License-Identifier: MIT
"""Reports: every value is escaped, nothing is left out silently, nothing is fetched."""

import re

import jinja2
import pytest

from equi_core.html_report import data_uri, render_report

PAGE = """{% extends "base.html" %}
{% block title %}Report of {{ name }}{% endblock %}
{% block content %}<p>{{ text }}</p>{% endblock %}
"""


def test_a_value_is_text_and_never_markup():
    page = render_report(PAGE, name="<b>cell</b>", text="a & b <script>alert(1)</script>")

    assert "<script>" not in page
    assert "a &amp; b &lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<h1>Report of &lt;b&gt;cell&lt;/b&gt;</h1>" in page
    assert "<title>Report of &lt;b&gt;cell&lt;/b&gt;</title>" in page


def test_the_style_sheet_is_part_of_the_page_and_nothing_is_fetched():
    page = render_report(PAGE, name="cell", text="text")

    assert ".verdict.pass" in page
    assert not re.search(r"https?:|<link|<script|@import|url\(", page)


def test_a_name_that_was_not_given_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="'text' is undefined"):
        render_report(PAGE, name="cell")


def test_a_page_without_title_is_refused():
    with pytest.raises(jinja2.TemplateError, match="title"):
        render_report('{% extends "base.html" %}{% block content %}x{% endblock %}')


def test_an_image_becomes_an_address_inside_the_page():
    # RFC 4648: base64("foobar") = "Zm9vYmFy".
    assert data_uri(b"foobar", "image/png") == "data:image/png;base64,Zm9vYmFy"
