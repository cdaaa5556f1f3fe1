"""How Sphinx builds the site; `docs/build.py` puts its pages together and calls it."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from api_pages import GROUPED, HOMES  # noqa: E402

import fdadp  # noqa: E402
import fdadp.errors  # noqa: E402

project, author, copyright = "fdadp", "The fdadp developers", "2026, the fdadp developers"
version = release = fdadp.__version__
root_doc = "index"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_nb",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
    "notfound.extension",
    "public_names",
    "offline",
]
nitpicky = True
nitpick_ignore_regex = [
    tuple(line.split(" ", 1))
    for line in (HERE / "nitpick.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
exclude_patterns = [
    "examples",
    *(f"gallery/{where}*.{kind}" for where in ("", "*/") for kind in ("py", "ipynb", "json")),
    "sg_execution_times.rst",
    "gallery/sg_execution_times.rst",
    "gallery/*/sg_execution_times.rst",
]
templates_path = [str(HERE / "_templates")]
html_static_path = [str(HERE / "_static")]
html_search_scorer = str(HERE / "_static" / "search_scorer.js")
html_css_files = ["fdadp.css"]
html_extra_path = [str(HERE / "_build" / "source" / "extra")]

# Pages and notebooks. Notebooks are stored with their outputs; `make notebooks` runs them.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath", "attrs_inline", "attrs_block", "fieldlist"]
myst_heading_anchors = 6
myst_dmath_double_inline = True
nb_execution_mode = "off"
nb_merge_streams = True

# API. Never "inherited-members" here: it would beat what the template of classes says.
autosummary_generate = True
autosummary_context = {"grouped": GROUPED}
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_default_options = {"exclude-members": "set_output, get_metadata_routing"}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # only these become links
numpydoc_xref_aliases = {
    "FDataGrid": "skfda.representation.grid.FDataGrid",
    "DataFrame": "pandas.DataFrame",
    "Series": "pandas.Series",
    "ndarray": "numpy.ndarray",
    "array_like": ":term:`array_like <numpy:array_like>`",
    "Generator": "numpy.random.Generator",
    "Figure": "matplotlib.figure.Figure",
    "Axes": "matplotlib.axes.Axes",
} | {name: home for name, home in HOMES.items() if name[0].isupper() and not name.isupper()}

_elsewhere = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "scipy": "https://docs.scipy.org/doc/scipy",
    "pandas": "https://pandas.pydata.org/docs",
    "matplotlib": "https://matplotlib.org/stable",
    "sklearn": "https://scikit-learn.org/stable",
    "skfda": "https://fda.readthedocs.io/en/stable",
}
intersphinx_mapping = {
    name: (url, str(HERE / "_inventories" / f"{name}.inv")) for name, url in _elsewhere.items()
}  # written by _inventories/write.py: the few names that are cited, so that no build asks the network

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"
bibtex_default_style = "plain"

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "doc_module": ("fdadp", "r_bridge"),
    "reference_url": {"fdadp": None, "r_bridge": None},
    "backreferences_dir": "api/backreferences",
    "inspect_global_variables": False,
    "abort_on_example_error": True,
    "image_srcset": ["2x"],
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = "fdadp"
html_favicon = html_logo = str(HERE / "_static" / "favicon.svg")
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "project/changes": []}
html_theme_options = {
    "logo": {"text": "fdadp"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ |> "
copybutton_prompt_is_regexp = True
notfound_urls_prefix = "/"
