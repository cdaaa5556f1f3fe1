"""Draw what README.md shows, into docs/_static: readme.png and the badges.

``python tools/readme_pictures.py``; with ``badges`` these alone. The figure is of simulated people, so that the truth
is known and nobody's curve is drawn: F(x, s, t) at one t, true, fitted without privacy, and privately (noise with a
seed, to be repeated). Badges say what pyproject.toml says and stand in the repository: no service is asked.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "docs" / "_static"
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}
BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{name}: {value}">
<title>{name}: {value}</title>
<rect width="{width}" height="20" rx="3" fill="#3b5b7e"/><rect width="{left}" height="20" rx="3" fill="#4a4a4a"/>
<g fill="#fff" font-family="DejaVu Sans,Verdana,sans-serif" font-size="11" text-anchor="middle">
<text x="{name_at}" y="14">{name}</text><text x="{value_at}" y="14">{value}</text></g></svg>
"""


def facts() -> dict[str, str]:
    """What badges say, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = project["classifiers"]
    last = {key: [row.split(" :: ")[-1] for row in rows if row.startswith(key)][-1] for key in ("Dev", "Programming")}
    first = project["requires-python"].removeprefix(">=")
    status = last["Dev"].partition(" - ")[2].lower()
    return {"python": f"{first} to {last['Programming']}", "licence": project["license"], "status": status}


def badge(name: str, value: str) -> str:
    """One badge as SVG."""
    left, right = (10 + 7 * len(text) for text in (name, value))
    places = {"left": left, "width": left + right, "name_at": left / 2, "value_at": left + right / 2}
    return BADGE.format(name=name, value=value, **places)


def draw() -> None:
    """The figure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr

    people, new = simulate_affr(scenario=1, n=3000, seed=0), simulate_affr(scenario=1, n=1000, seed=1)
    privacy = Privacy(epsilon=1.0, delta=1e-6, n=3000, random_state=0)
    private = AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS).fit(people.X, people.Y)
    ordinary = AdditiveFunctionOnFunction().fit(people.X, people.Y)
    about = new.mean_function - new.mean_function.mean(axis=0)

    def explained(model: AdditiveFunctionOnFunction) -> float:
        apart = model.predict(new.X).data_matrix[..., 0] - new.mean_function
        return 1 - float((apart**2).mean() / (about**2).mean())

    x, s, t = np.linspace(-2, 2, 61), np.linspace(0, 1, 61), np.array([0.5])
    surfaces = [one.surface(x, s, t)[..., 0] for one in (new, ordinary, private)]
    surfaces = [surface - surface[30] for surface in surfaces]  # functions of s alone are not identified
    names = [
        "the truth",
        f"without privacy: {explained(ordinary):.3f} explained",
        f"private, ε = 1, δ = 10⁻⁶: {explained(private):.3f}",
    ]
    size = max(np.abs(surface).max() for surface in surfaces)
    figure, axes = plt.subplots(1, 3, figsize=(9.2, 2.9), sharey=True, layout="constrained")
    for axis, surface, name in zip(axes, surfaces, names, strict=True):
        picture = axis.contourf(s, x, surface, cmap="RdBu_r", levels=np.linspace(-size, size, 18))
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("s")
    axes[0].set_ylabel("x = X(s)")
    figure.colorbar(picture, ax=axes, label="F(x, s, ½) − F(0, s, ½)", ticks=range(-4, 5, 2))
    figure.savefig(STATIC / "readme.png", dpi=90, pil_kwargs={"optimize": True})


def main() -> None:
    """Badges and, unless only these are asked for, the figure."""
    STATIC.mkdir(exist_ok=True)
    for name, value in facts().items():
        (STATIC / f"badge-{name}.svg").write_text(badge(name, value), encoding="utf-8")
    if sys.argv[1:] != ["badges"]:
        draw()


if __name__ == "__main__":
    main()
