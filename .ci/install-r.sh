#!/bin/sh
# R with mgcv for the tests that cross-check live, and what the R package's tests and vignette take, where apt and root are there.
# Without: says so and succeeds; with REQUIRE_R=1 a failed installation is an error.
set -u
packages="r-base-dev r-cran-mgcv r-cran-vgam"
packages="$packages r-cran-reticulate r-cran-testthat r-cran-jsonlite r-cran-knitr r-cran-rmarkdown pandoc libpython3-dev" # R package

installed() {
    command -v Rscript >/dev/null 2>&1 && command -v pandoc >/dev/null 2>&1 && Rscript -e '
        needed <- c("mgcv", "VGAM", "reticulate", "testthat", "jsonlite", "knitr", "rmarkdown")
        stopifnot(vapply(needed, requireNamespace, TRUE, quietly = TRUE))' >/dev/null 2>&1
}

if ! installed && command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "Installing R with apt-get ($packages) ..."
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    log=$({ apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages; } </dev/null 2>&1) || echo "$log" | tail -n 20
fi

if installed; then
    Rscript -e 'cat(R.version.string, "with mgcv", format(packageVersion("mgcv")), "\n")'
elif [ "${REQUIRE_R:-0}" = 1 ]; then
    echo "R with its packages could not be installed." >&2
    exit 1
else
    echo "R, or one of its packages, is not here (on Debian or Ubuntu, as root: apt-get install $packages): what needs it is skipped."
fi
