"""How the site is built: Sphinx, pages in Markdown, the API from the docstrings, formulas as MathML, no network."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import tailwise

project = "tailwise"
author = "the tailwise authors"
release = version = tailwise.__version__
language = "en"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml", "versions"]
exclude_patterns = ["figures", "extensions", "templates", "walks", "**.ipynb_checkpoints"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
html_math_renderer = "mathml"
# The docstrings' roles may name what the API pages leave out; they are then shown as code.
suppress_warnings = ["ref.python", "config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = f"tailwise {release}"
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["version-menu", "theme-switcher"],
    "show_toc_level": 1,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}


def setup(app):
    """Leave out what scikit-learn puts into every estimator for the routing of metadata."""

    def skip(app, what, name, obj, skips, options):
        return True if name.startswith("set_") and name.endswith("_request") else None

    app.connect("autodoc-skip-member", skip)
