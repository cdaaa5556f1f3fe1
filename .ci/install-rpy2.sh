#!/bin/sh
# install-rpy2.sh PYTHON: into PYTHON's environment the rpy2 that fits the R found here; r_bridge says which one that is.
# Without R: says what is skipped and succeeds. With REQUIRE_R=1 an rpy2 that does not work is an error.
set -u
python=$1

works() { "$python" -m r_bridge status --start >/dev/null 2>&1; }

wanted=$("$python" -m r_bridge requirements) || exit 1
if [ -z "$wanted" ]; then
    echo "There is no R here: the tests that call R will be skipped, each by name."
    exit 0
fi
if ! works; then
    echo "Installing" $wanted "..."
    # shellcheck disable=SC2086
    log=$("$python" -m pip install --quiet --upgrade $wanted 2>&1) || echo "$log" | tail -n 20
fi
"$python" -m r_bridge status --start && exit 0
if [ "${REQUIRE_R:-0}" = 1 ]; then
    echo "rpy2 could not be made to work." >&2
    exit 1
fi
echo "The tests that call R will be skipped, each by name."
