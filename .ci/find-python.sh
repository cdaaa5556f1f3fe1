#!/bin/sh
# find-python.sh VERSION...: print the first working interpreter of these versions (3.11 3.12 ...) that can make a
# virtual environment, from PATH or pyenv. A pyenv shim may be in PATH without its version being chosen: so each one is run.
for version in "$@"; do
    for candidate in "python$version" /usr/bin/python"$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
        if "$candidate" -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" >/dev/null 2>&1; then
            echo "$candidate"
            exit 0
        fi
    done
done
exit 1
