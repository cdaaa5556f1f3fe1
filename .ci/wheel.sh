#!/bin/sh
# wheel.sh PYTHON...: build the wheel, install it into an empty environment of each Python, and use it from an empty
# folder: import, demonstration, one private fit. What the wheel must not bring: r_bridge, plugins of pytest.
set -eu
[ $# -gt 0 ] || { echo "wheel.sh: no Python given" >&2; exit 1; }
unset PYTHONPATH
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/source" "$folder/empty"
cp -r setup.cfg pyproject.toml MANIFEST.in README.md LICENSE fdadp "$folder/source"
for python in "$@"; do
    echo "The wheel with $("$python" --version)"
    "$python" -m venv "$folder/venv"
    own=$folder/venv/bin/python
    "$own" -m pip install --quiet --upgrade pip
    [ -n "$(ls "$folder"/*.whl 2>/dev/null)" ] || "$own" -m pip wheel --quiet --no-deps --wheel-dir "$folder" "$folder/source"
    "$own" -m pip install --quiet "$(ls "$folder"/*.whl)[plots]" pytest
    (
        cd "$folder/empty"
        "$own" - <<'EOF'
import importlib.util
import numpy as np
import fdadp
from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr

assert "site-packages" in fdadp.__file__, fdadp.__file__
assert importlib.util.find_spec("r_bridge") is None, "the wheel brings r_bridge"
people = simulate_affr(scenario=1, n=500, seed=0)
privacy = Privacy(epsilon=1.0, delta=1e-6, n=500)
model = AdditiveFunctionOnFunction(privacy=privacy, bounds={"X": (-4.5, 4.5), "Y": (-8, 8)}).fit(people.X, people.Y)
assert np.isfinite(model.predict(people.X).data_matrix).all()
print(fdadp.__version__, model.ledger_.headline)
EOF
        "$own" -m fdadp demo --help >/dev/null
        "$own" -m fdadp demo --out demo >/dev/null && [ -n "$(ls demo)" ] && rm -rf demo
        "$own" -m pytest --trace-config >pytest.txt || [ $? = 5 ] # 5: no tests, as there are none
        if grep -E "fdadp|r_bridge" pytest.txt | grep -v "^rootdir"; then echo "pytest loads these of ours"; exit 1; fi
        rm -rf pytest.txt .pytest_cache
    )
    rm -rf "$folder/venv"
done
