#!/bin/sh
# debian.sh 13|testing: what Debian has that this machine may not have, in a root of its own ($DEBIAN_ROOTS, default .ci/roots),
# made once and used again; needs root and debootstrap.
#   13       R 4.5, mgcv 1.9, reticulate 1.41 (with py_require), Python 3.13, NumPy 2, today's rpy2; about 1.2 GB: the R
#            package (R CMD check with its tests and vignette) and the live tests of the bridge to R
#   testing  the newest Python that Debian has, without a compiler; about 1 GB: the wheel
# Says why and succeeds where it cannot run; with REQUIRE_DEBIAN=1 that is an error.
set -eu
cd "$(dirname "$0")/.."
release=$1
root=${DEBIAN_ROOTS:-$PWD/.ci/roots}/$release
case $release in
13)
    suite=trixie
    packages="r-base-core r-cran-mgcv r-cran-vgam r-cran-reticulate r-cran-testthat r-cran-jsonlite r-cran-knitr r-cran-rmarkdown
        pandoc python3 python3-venv libpython3.13 make ca-certificates"
    ;;
testing)
    suite=testing
    packages="python3 python3-venv ca-certificates"
    ;;
*)
    echo "debian.sh: 13 or testing, got $release" >&2
    exit 1
    ;;
esac

not_run() {
    echo "Debian $release: not run, $1"
    exit "${REQUIRE_DEBIAN:-0}"
}

[ "$(id -u)" = 0 ] || not_run "only root can make one"
if ! command -v debootstrap >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 || not_run "there is no debootstrap"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap; } </dev/null >/dev/null 2>&1 ||
        not_run "debootstrap cannot be installed"
fi
unshare --mount true 2>/dev/null || not_run "this machine lets nobody mount (unshare --mount)"
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || not_run "this is no copy of the repository with git"

# inside COMMAND...: in the root. Mounts are of this one process and go with it, whatever happens.
inside() {
    unshare --mount --propagation private sh -c '
        set -eu
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        if [ -n "${FDADP_REFERENCE:-}" ]; then
            mkdir -p "$root/reference"
            mount --bind "$FDADP_REFERENCE" "$root/reference"
            export FDADP_REFERENCE=/reference
        fi
        unset PIP_FIND_LINKS PIP_CONSTRAINT FDADP_DATA TMPDIR PYTHONPATH RETICULATE_PYTHON R_PYTHON R_LIBS R_HOME VIRTUAL_ENV
        export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
        export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1
        exec chroot "$root" "$@"' sh "$root" "$@" </dev/null
}

network() { # names, certificates and pip's settings, as they are on this machine today
    mkdir -p "$root/etc/ssl/certs"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    for file in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
        if [ -e "$file" ]; then cp -L "$file" "$root$file"; fi
    done
}

if [ "$(cat "$root/.fdadp" 2>/dev/null)" != "$packages" ]; then
    echo "Making a root of Debian $release in $root ..."
    rm -rf "$root"
    mkdir -p "$root"
    if ! debootstrap --variant=minbase "$suite" "$root" >"$root.log" 2>&1; then
        tail -n 5 "$root.log"
        rm -rf "$root"
        not_run "debootstrap could not make it (see $root.log)"
    fi
    network
    echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/99mirrors" # some are copies of an earlier day
    # shellcheck disable=SC2086
    inside sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" && apt-get clean' sh $packages >"$root.log" 2>&1 ||
        { tail -n 20 "$root.log"; exit 1; }
    echo "$packages" >"$root/.fdadp"
fi
network

rm -rf "$root/src"
mkdir "$root/src"
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read --no-recursion -cf - -T - 2>/dev/null | tar -xf - -C "$root/src"

if [ "$release" = 13 ]; then
    inside sh -euc '
        cd /src
        [ -x /venv/bin/python ] || python3 -m venv /venv
        # rpy2 without a compiler
        RPY2_CFFI_MODE=ABI PYTHONWARNINGS=ignore /venv/bin/python -m pip install --quiet --group r --editable ".[plots]" pytest pytest-xdist hypothesis
        Rscript -e "cat(R.version.string, \"\\n\"); for (p in c(\"mgcv\", \"reticulate\")) cat(p, format(packageVersion(p)), \"\\n\")"
        /venv/bin/python .ci/report.py versions
        REQUIRE_R=1 R_PYTHON=/venv/bin/python sh .ci/r-package.sh tests check
        if [ -d r_bridge ]; then
            /venv/bin/python -m r_bridge status
            /venv/bin/python -m pytest -q tests/python/r_bridge/ --junitxml=.ci/reports/debian.xml
            /venv/bin/python .ci/report.py tests .ci/reports/debian.xml
        fi
    '
else
    inside sh -euc '
        cd /src
        rm -rf /venv /wheel
        python3 -m venv /venv
        sh .ci/wheel.sh /venv/bin/python /wheel /dev/null
    '
fi
echo "Debian $release: passed"
