#!/bin/sh
# make-venv.sh DIR: a virtual environment in DIR from the first Python >= 3.11 that can make one.
# $PYTHON, if set, is the only candidate.
set -eu
dir=$1
enough='import sys; sys.exit(sys.version_info < (3, 11))'

if [ -x "$dir/bin/python" ] && "$dir/bin/python" -c "$enough" 2>/dev/null && "$dir/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

found=""
advice=""
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
    version=$("$candidate" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || continue
    found="$found $candidate ($version)"
    "$candidate" -c "$enough" || continue
    if ! "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
        advice=${advice:-"$candidate ($version) cannot make virtual environments. On Debian or Ubuntu, as root:
    apt-get install python${version%.*}-venv"}
        continue
    fi
    echo "Making $dir with $candidate ($version) ..."
    rm -rf "$dir"
    "$candidate" -m venv "$dir" || { rm -rf "$dir"; exit 1; }
    "$dir/bin/python" -m pip install --quiet --upgrade pip || { rm -rf "$dir"; exit 1; }
    exit 0
done

if [ -n "$advice" ]; then
    echo "$advice" >&2
    exit 1
fi
echo "fdadp needs Python 3.11 or newer; found:${found:- none}." >&2
echo "Install one, or name it: make demo PYTHON=/path/to/python3.12" >&2
exit 1
