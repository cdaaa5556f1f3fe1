#!/bin/sh
# R with mgcv and VGAM for the tests that cross-check live, where apt and root are there.
# Without: says so and succeeds; with REQUIRE_R=1 a failed installation is an error.
set -u
packages="r-base-dev r-cran-mgcv r-cran-vgam" # the R package will add r-cran-reticulate r-cran-testthat r-cran-jsonlite
needed='for (p in c("mgcv", "VGAM")) stopifnot(requireNamespace(p, quietly = TRUE))'

installed() {
    command -v Rscript >/dev/null 2>&1 && Rscript -e "$needed" >/dev/null 2>&1
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
    echo "R with mgcv and VGAM could not be installed." >&2
    exit 1
else
    echo "R with mgcv and VGAM is not here (on Debian or Ubuntu, as root: apt-get install $packages): the live R tests will be skipped."
fi
