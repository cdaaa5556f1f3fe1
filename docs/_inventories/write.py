"""Write the inventories of other projects' sites: of each only the names that our pages cite.

So a build asks no network, and a new foreign name is a change that one sees: add it here, run
``.venv/bin/python docs/_inventories/write.py``.
"""

from __future__ import annotations

import zlib
from pathlib import Path

BUILT_IN = {
    "int": "functions.html#int",
    "float": "functions.html#float",
    "str": "stdtypes.html#str",
    "bytes": "stdtypes.html#bytes",
    "tuple": "stdtypes.html#tuple",
    "list": "stdtypes.html#list",
    "dict": "stdtypes.html#dict",
    "set": "stdtypes.html#set",
    "frozenset": "stdtypes.html#frozenset",
    "range": "stdtypes.html#range",
}

# project: name: (kind, page and anchor; $ stands for the name)
CITED: dict[str, dict[str, tuple[str, str]]] = {
    "python": {
        "ValueError": ("py:exception", "library/exceptions.html#$"),
        "TypeError": ("py:exception", "library/exceptions.html#$"),
        "Exception": ("py:exception", "library/exceptions.html#$"),
        "UserWarning": ("py:exception", "library/exceptions.html#$"),
        **{name: ("py:class", f"library/{page}") for name, page in BUILT_IN.items()},
        "None": ("py:data", "library/constants.html#$"),
        "True": ("py:data", "library/constants.html#$"),
        "False": ("py:data", "library/constants.html#$"),
        "bltin-boolean-values": ("std:label", "library/stdtypes.html#$"),
        "sequence": ("std:term", "glossary.html#term-sequence"),
        "iterable": ("std:term", "glossary.html#term-iterable"),
        "callable": ("py:function", "library/functions.html#$"),
        "slice": ("py:class", "library/functions.html#$"),
        "pathlib.Path": ("py:class", "library/pathlib.html#$"),
        "fractions.Fraction": ("py:class", "library/fractions.html#$"),
    },
    "numpy": {
        "numpy.ndarray": ("py:class", "reference/generated/numpy.ndarray.html#$"),
        "numpy.random.Generator": ("py:class", "reference/random/generator.html#$"),
        "numpy.random.default_rng": ("py:function", "reference/random/generator.html#$"),
        "array_like": ("std:term", "glossary.html#term-array_like"),
    },
    "scipy": {"scipy.integrate.simpson": ("py:function", "reference/generated/scipy.integrate.simpson.html#$")},
    "pandas": {
        "pandas.DataFrame": ("py:class", "reference/api/pandas.DataFrame.html#$"),
        "pandas.Series": ("py:class", "reference/api/pandas.Series.html#$"),
        "pandas.Index": ("py:class", "reference/api/pandas.Index.html#$"),
    },
    "matplotlib": {
        "matplotlib.axes.Axes": ("py:class", "api/_as_gen/matplotlib.axes.Axes.html#$"),
        "matplotlib.figure.Figure": ("py:class", "api/_as_gen/matplotlib.figure.Figure.html#$"),
    },
    "sklearn": {
        "sklearn.base.BaseEstimator": ("py:class", "modules/generated/sklearn.base.BaseEstimator.html#$"),
        "sklearn.base.clone": ("py:function", "modules/generated/sklearn.base.clone.html#$"),
        "sklearn.model_selection.cross_val_score": (
            "py:function",
            "modules/generated/sklearn.model_selection.cross_val_score.html#$",
        ),
        "sklearn.pipeline.Pipeline": ("py:class", "modules/generated/sklearn.pipeline.Pipeline.html#$"),
    },
    "skfda": {
        "skfda.representation.grid.FDataGrid": (
            "py:class",
            "modules/autosummary/skfda.representation.grid.FDataGrid.html#$",
        ),
    },
}


def main() -> None:
    """Write one file a project, in version 2 of Sphinx's format."""
    for project, names in CITED.items():
        rows = "".join(f"{name} {kind} 1 {page} -\n" for name, (kind, page) in sorted(names.items()))
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        (Path(__file__).parent / f"{project}.inv").write_bytes(head.encode() + zlib.compress(rows.encode(), 9))


if __name__ == "__main__":
    main()
