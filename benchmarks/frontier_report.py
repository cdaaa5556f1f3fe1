"""From single fits to the table of the frontier, and what in it is below what was promised."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

ALLOWANCE, NOISY_ALLOWANCE = 0.03, 0.05
"""How far a mean share may be below the recorded one; the second at n = 300."""
COVERAGE_ALLOWANCE = 3.0
"""Percentage points by which coverage may differ from nominal where n ε >= 1000."""
SCENARIOS = 5
"""Means are promised of all of them together."""
CHECKED = ("main", "pure")


def summarise(fits: list[dict[str, Any]], part: str, expected: dict[str, Any]) -> list[dict[str, Any]]:
    """One row a cell, with its misses."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in fits:
        cells.setdefault(tuple(one[k] for k in ("method", "n", "epsilon", "width", "scenario")), []).append(one)
    rows = []
    for (method, n, epsilon, width, scenario), members in cells.items():
        row: dict[str, Any] = {"method": method, "n": n, "epsilon": epsilon, "width": width, "scenario": scenario}
        for name in ("share", "rmspe", "coverage_85", "coverage_95", "width_95", "seconds"):
            known = [one[name] for one in members if one[name] is not None]
            row[name] = mean(known) if known else None
        row["share_sd"] = stdev(one["share"] for one in members) if len(members) > 1 else 0.0
        row["worst"] = min(one["share"] for one in members)
        row["expected"] = (
            expected.get(part, {}).get(f"{n} {epsilon:g} {width} {scenario}") if method == "dp-aff" else None
        )
        row["misses"] = find_misses(row) if part in CHECKED and method == "dp-aff" else []
        if part == "pure" and row["worst"] <= 0:
            row["misses"].append(f"worst fit {row['worst']:.2f}")
        rows.append(row)
    order = {name: i for i, name in enumerate(("ok", "wide", "narrow", "S1", "S2", "S3", "A", "B"))}
    return sorted(rows, key=lambda r: (r["n"], r["epsilon"], r["method"], order[r["width"]], order[r["scenario"]]))


def means(rows: list[dict[str, Any]], part: str, expected: dict[str, Any]) -> list[dict[str, Any]]:
    """Means over scenarios, the worst fit, and where the mean is below what was promised for all five."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault(tuple(row[k] for k in ("method", "n", "epsilon", "width")), []).append(row)
    found = []
    for (method, n, epsilon, width), members in cells.items():
        one: dict[str, Any] = {"method": method, "n": n, "epsilon": epsilon, "width": width}
        for name in ("share", "coverage_85", "coverage_95"):
            one[name] = None if any(m[name] is None for m in members) else mean(m[name] for m in members)
        one["worst"] = min(members, key=lambda m: m["worst"])["worst"]
        one["least"] = expected.get("means", {}).get(part, {}).get(f"{n} {epsilon:g} {width}")
        short = method == "dp-aff" and len(members) == SCENARIOS and one["share"] < (one["least"] or -1)
        one["misses"] = [f"mean share {one['share']:.3f} below {one['least']:.3f}"] if short else []
        found.append(one)
    return found


def find_misses(row: dict[str, Any]) -> list[str]:
    """What is below the promise: share, coverage."""
    found = []
    if row["expected"] is not None:
        least = row["expected"][0] - (
            NOISY_ALLOWANCE if row["n"] * row["epsilon"] <= 300 and row["n"] <= 300 else ALLOWANCE
        )
        if row["share"] < least:
            found.append(f"share {row['share']:.3f} below {least:.3f}")
    if row["n"] * row["epsilon"] >= 1000:
        for level in (85, 95):
            value = 100 * row[f"coverage_{level}"]
            if abs(value - level) > COVERAGE_ALLOWANCE:
                found.append(f"coverage {value:.1f} instead of {level} %")
    return found


def markdown(part: str, rows: list[dict[str, Any]], over: list[dict[str, Any]], about: dict[str, Any]) -> str:
    """Cells as rows, scenarios as columns: share (recorded share), coverage of 85 and 95 % intervals; then means."""
    scenarios = [name for name in ("S1", "S2", "S3", "A", "B") if any(r["scenario"] == name for r in rows)]
    several = len({row["method"] for row in rows}) > 1
    delta = "pure ε" if about["delta"] is None else f"δ = {about['delta']:g}"
    lines = [
        f"### {part}: {about['adjacency']}, {delta}, {len(about['seeds'])} cohorts a cell, {about['seconds']} s",
        "",
        "Share of the explainable variance (recorded by the prototype), coverage of 85/95 % intervals in percent.",
        "",
        "| n, ε | range | " + ("mechanism | " if several else "") + " | ".join(scenarios) + " |",
        "|---" * (2 + several + len(scenarios)) + "|",
    ]
    grouped: dict[tuple[Any, ...], dict[str, str]] = {}
    for row in rows:
        recorded = f" ({row['expected'][0]:.2f})" if row["expected"] else ""
        mark = " **miss**" if row["misses"] else ""
        covered = "" if row["width_95"] is None else f" {100 * row['coverage_85']:.0f}/{100 * row['coverage_95']:.0f}"
        share = f"{row['share']:.3f}" if row["share"] > -10 else f"{row['share']:.0f}"
        cell = f"{share}{recorded}{covered}{mark}"
        grouped.setdefault((row["n"], row["epsilon"], row["width"], row["method"]), {})[row["scenario"]] = cell
    for (n, epsilon, width, method), cells in grouped.items():
        head = [f"{n:,}, {epsilon:g}", width, *([method] if several else [])]
        lines.append("| " + " | ".join([*head, *(cells.get(name, "") for name in scenarios)]) + " |")
    if all(row["coverage_85"] is not None for row in over):
        lines += ["", "| n, ε | range | mean share | worst fit | 85 % cover | 95 % cover |", "|---" * 6 + "|"]
        for row in over:
            promised = "" if row["least"] is None else f" (promised {row['least']:g})"
            lines.append(
                f"| {row['n']:,}, {row['epsilon']:g} | {row['width']} | {row['share']:.3f}{promised} "
                f"| {row['worst']:.2f} | {100 * row['coverage_85']:.1f} | {100 * row['coverage_95']:.1f} |"
            )
        lines += [f"* {text}" for row in over for text in row["misses"]]
    misses = [(row, text) for row in rows for text in row["misses"]]
    lines += ["", f"{len(rows)} cells, {len({id(row) for row, _ in misses})} with a miss."]
    for row, text in misses:
        lines.append(f"* n = {row['n']:,}, ε = {row['epsilon']:g}, {row['width']}, {row['scenario']}: {text}")
    return "\n".join(lines) + "\n"
