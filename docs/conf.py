"""How the site is made of these pages; `python tools/docs.py` builds it."""

import re

from docsite.api import PAGES  # tools/ is on the path when tools/docs.py builds

import cg

project = "cg"
author = "cg maintainers"
version = release = cg.__version__
project_copyright = "cg maintainers, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "docsite.docstrings"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_static"]
myst_heading_anchors = 4

# Docstrings are prose with code in single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_docstring_signature = False  # the stubs have it, with types
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
# Names of other libraries have no index to link to without a network; of ours, those have one whose module has a page.
DOCUMENTED = "|".join(re.escape(module.removeprefix("cg.")) for _, _, modules in PAGES.values() for module in modules)
nitpick_ignore_regex = [("py:.*", r"(?!cg\.).*"), ("py:.*", rf"cg\.(?!({DOCUMENTED})\.[A-Z]).*")]

highlight_language = "text"  # for a block that names no language

html_theme = "furo"
html_title = "cg"
html_static_path = ["_static"]
html_css_files = ["cg.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5a94",
        "color-brand-content": "#1f5a94",
        "color-brand-visited": "#5b3f8c",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', sans-serif",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8ab8e6",
        "color-brand-content": "#8ab8e6",
        "color-brand-visited": "#bda6e8",
    },
}
