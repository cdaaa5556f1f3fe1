#!/bin/sh
# wheel.sh PYTHON FOLDER CONSTRAINTS: build the wheel in FOLDER, install it into PYTHON's environment, in which nothing
# else is, and use it from an empty folder: import, one private fit, demonstration. It brings compiled kernels, and not
# r_bridge nor plugins of pytest.
set -eu
[ $# = 3 ] || { echo "wheel.sh: PYTHON FOLDER CONSTRAINTS, got $*" >&2; exit 1; }
unset PYTHONPATH
cd "$(dirname "$0")/.."
root=$PWD
python=$1
wheels=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/source" "$folder/empty" "$wheels"
cp -r setup.cfg setup.py pyproject.toml MANIFEST.in README.md LICENSE fdadp "$folder/source"
echo "The wheel with $("$python" --version)"
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$wheels" "$folder/source"
"$python" -m pip install --quiet --constraint "$3" "$(ls "$wheels"/*.whl)[plots]" pytest
cd "$folder/empty"
"$python" - <<'EOF'
import importlib.util
import shutil
import sys
import sysconfig
from pathlib import Path
import numpy as np
import fdadp
from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr

assert "site-packages" in fdadp.__file__, fdadp.__file__
assert importlib.util.find_spec("r_bridge") is None, "the wheel brings r_bridge"
people = simulate_affr(scenario=1, n=500, seed=0)
privacy = Privacy(epsilon=1.0, delta=1e-6, n=500)
model = AdditiveFunctionOnFunction(privacy=privacy, bounds={"X": (-4.5, 4.5), "Y": (-8, 8)}).fit(people.X, people.Y)
assert np.isfinite(model.predict(people.X).data_matrix).all()
if shutil.which("g++") and Path(sysconfig.get_path("include"), "Python.h").exists():
    assert "numba" not in sys.modules, "the wheel brings no compiled kernels"
print(fdadp.__version__, model.ledger_.headline)
EOF
"$python" -m fdadp demo --help >/dev/null
"$python" -m fdadp demo --out demo >/dev/null && [ -n "$(ls demo)" ]
"$python" -m pytest --trace-config >pytest.txt || [ $? = 5 ] # 5: no tests, as there are none
if sed "s|$root||g" pytest.txt | grep -E "fdadp|r_bridge" | grep -v "^rootdir"; then echo "pytest loads these of ours"; exit 1; fi
