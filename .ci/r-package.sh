#!/bin/sh
# r-package.sh [tests] [check] [pages]: the R package, installed into a folder of its own.
# r-package.sh suits PYTHON: whether reticulate can use that one.
#   tests   testthat; fails when no test passed
#   check   R CMD build (which runs the vignette) and R CMD check --as-cran, without the tests again; fails on errors, warnings and notes.
#           Left out is what depends on this machine: the network, the check of the clock by it, qpdf, how long examples take where others use it
#   pages   R's part of the site, in docs/_build/r: a page of each Rd, and the vignette as it ran
# The Python is $R_PYTHON, or the first of .venv and .venv-r that R can use; the latter is made, with NumPy < 2, where it takes that.
# Says what is missing and succeeds where R or its packages are not there; with REQUIRE_R=1 that is an error.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- tests check

needed="reticulate testthat knitr rmarkdown"
missing="R"
if command -v Rscript >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    missing=$(Rscript -e 'for (p in commandArgs(TRUE)) if (!requireNamespace(p, quietly = TRUE)) cat("", p)' $needed 2>/dev/null)
fi
command -v pandoc >/dev/null 2>&1 || missing="$missing pandoc"
if [ -n "$missing" ]; then
    echo "R package: not tested, for want of:$(echo " $missing" | tr -s ' ') (as root on Debian or Ubuntu: make r)"
    exit "${REQUIRE_R:-0}"
fi

suits() { # can matrices go from R to this Python and back?
    [ -x "$1" ] && RETICULATE_PYTHON=$1 Rscript -e '
        numpy <- reticulate::import("numpy", convert = FALSE)
        stopifnot(identical(dim(reticulate::py_to_r(numpy$add(matrix(1, 2, 3), 1))), 2:3))' >/dev/null 2>&1
}

if [ "$1" = suits ]; then
    suits "$2"
    exit
fi

if [ ! .venv-r/.stamp -nt pyproject.toml ]; then rm -rf .venv-r; fi # the dependencies may have changed
python=""
for candidate in ${R_PYTHON:-"$PWD/.venv/bin/python" "$PWD/.venv-r/bin/python"}; do
    # From another folder: here, any Python finds fdadp, with or without what it needs.
    if suits "$candidate" && (cd / && "$candidate" -c 'import fdadp' 2>/dev/null); then
        python=$candidate
        break
    fi
done
if [ -z "$python" ] && [ -n "${R_PYTHON:-}" ]; then
    echo "R_PYTHON must be a Python with fdadp that reticulate can use, got $R_PYTHON" >&2
    exit 1
elif [ -z "$python" ]; then
    # R loads Python as a library: it must have been built as one.
    base=$(for p in $(sh .ci/find-python.sh 3.11 3.12 2>/dev/null) /usr/bin/python3; do
        "$p" -c 'import sys, sysconfig, venv, ensurepip; sys.exit(sys.version_info < (3, 10) or not sysconfig.get_config_var("Py_ENABLE_SHARED"))' \
            2>/dev/null && echo "$p" && break
    done)
    if [ -z "$base" ]; then
        echo "R package: not tested, for want of a Python (3.11 or 3.12) with venv that was built with --enable-shared"
        exit "${REQUIRE_R:-0}"
    fi
    echo "Making .venv-r, with NumPy < 2 for reticulate, with $base ..."
    rm -rf .venv-r
    "$base" -m venv .venv-r
    .venv-r/bin/python -m pip install --quiet --upgrade pip
    PYTHONWARNINGS=ignore .venv-r/bin/python -m pip install --quiet 'numpy<2' --editable .
    python=$PWD/.venv-r/bin/python
    suits "$python" || { echo "R package: reticulate cannot use $python"; exit 1; }
    touch .venv-r/.stamp
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/library"
export RETICULATE_PYTHON="$python" R_LIBS="$work/library${R_LIBS:+:$R_LIBS}" FDADP_REQUIRE=1
"$python" -c 'import numpy, sys; print(f"Python {sys.version.split()[0]}, NumPy {numpy.__version__}: {sys.executable}")'

for what in "$@"; do
    case $what in
    tests)
        R CMD INSTALL --library="$work/library" . >"$work/install.log" 2>&1 || { cat "$work/install.log"; exit 1; }
        Rscript .ci/testthat.R
        ;;
    check)
        # R CMD build copies a whole folder before it looks at .Rbuildignore: environments and Debian roots too.
        mkdir -p "$work/source/tests"
        cp -r DESCRIPTION NAMESPACE NEWS.md README.md LICENCE .Rbuildignore R man inst vignettes "$work/source"
        cp -r tests/testthat.R tests/testthat "$work/source/tests"
        export _R_CHECK_CRAN_INCOMING_=false _R_CHECK_EXAMPLE_TIMING_THRESHOLD_=600
        (cd "$work" && R CMD build source && R CMD check --as-cran --no-manual --no-tests --ignore-vignettes fdadp_*.tar.gz) || exit 1
        found=$(awk '!/^Status/ && /(NOTE|WARNING|ERROR)$/ { what = $0; getline; if (!/qpdf|unable to verify current time/) print what ": " $0 }' \
            "$work/fdadp.Rcheck/00check.log")
        if [ -n "$found" ]; then
            echo "FAILED: R CMD check --as-cran found: $found"
            exit 1
        fi
        ;;
    pages)
        R CMD INSTALL --no-docs --library="$work/library" . >"$work/install.log" 2>&1 || { cat "$work/install.log"; exit 1; }
        rm -rf docs/_build/r
        Rscript docs/_ext/r_pages.R docs/_build/r
        ;;
    *)
        echo "r-package.sh: tests, check or pages, got '$what'" >&2
        exit 2
        ;;
    esac
done
