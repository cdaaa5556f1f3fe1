"""From the results to the Markdown tables of ``docs/benchmarks.md``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LABELS = {
    "fdadp": "**fdadp**: additive model, 3 components, REML, with FPCA of Y",
    "private": "fdadp, private end to end: DP-AFF, ε = 1, OpenDP's noise, calibrated intervals",
    "mgcv": "`mgcv::gam`, the same 3 components, REML",
    "mgcv-blas": "`mgcv::gam`, the same, with OpenBLAS",
    "fdars": "fdars, *linear* model on principal components",
    "fdatools": "fdatools, *linear* model, β(s, t) on 7 × 7 splines",
    "scikit-fda": "scikit-fda, *concurrent linear* model",
}


def markdown(result: dict[str, Any], recorded: dict[str, Any]) -> str:
    sizes = sorted({row["n"] for row in result["fits"]})
    cells = {(row["method"], row["n"]): row for row in result["fits"]}
    methods = [name for name in LABELS if any((name, n) in cells for n in sizes)]
    parts = [about(result, cells)]
    if sizes:
        lines = [header(["fit time (× fdadp's); memory", *(f"n = {n:,}" for n in sizes)])]
        lines += [row([LABELS[name], *(fit_cell(cells.get((name, n))) for n in sizes)]) for name in methods]
        for name, seconds in recorded.items():
            if isinstance(seconds, dict):
                marks = [f"{seconds[str(n)]:.3g} s" if str(n) in seconds else "not run" for n in sizes]
                lines.append(row([f"`{name.split(',')[0]}`,{name.split(',')[1]}", *marks]))
        parts.append("\n".join(lines))
    if any("difference" in r for r in result["fits"]):
        parts.append(agreement(result))
    if result["chunks"]:
        lines = [header(["fdadp from chunks on disk (`fit_chunks`)", *(f"n = {r['n']:,}" for r in result["chunks"])])]
        lines.append(row(["fit", *(duration(r["fitting"]) for r in result["chunks"])]))
        lines.append(row(["reading the files twice", *(duration(r["reading"]) for r in result["chunks"])]))
        lines.append(row(["CPU time of both", *(duration(r["cpu"]) for r in result["chunks"])]))
        lines.append(row(["fit, per curve", *(f"{r['fitting'] / r['n'] * 1e6:.2g} µs" for r in result["chunks"])]))
        lines.append(row(["peak memory, the chunk included", *(megabytes(r["memory"]) for r in result["chunks"])]))
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def agreement(result: dict[str, Any]) -> str:
    rows = [r for r in result["fits"] if "difference" in r]
    same = max((max(r["difference"]["at mgcv's smoothing parameters"]) for r in rows), default=float("nan"))
    own = [f"{max(r['difference']['at own smoothing parameters']):.0e} at n = {r['n']:,}" for r in rows]
    cpu = [f"{r['cpu_ratio']:.0f} at n = {r['n']:,}" for r in rows if r["method"] == "mgcv"]
    return (
        f"In CPU time, which others on the machine disturb less, the ratio to `mgcv::gam` is {', '.join(cpu)}. "
        "Memory is the peak beyond the data (for mgcv also beyond its matrices S and L). At mgcv's "
        f"smoothing parameters the fitted scores of fdadp are mgcv's to {same:.0e} of their range in this run. At its "
        f"own they are so to {', and to '.join(dict.fromkeys(own))} (mgcv 1.8 counts a direction that is not "
        "identified as unpenalised)."
    )


def about(result: dict[str, Any], cells: dict[tuple[str, int], dict[str, Any]]) -> str:
    m = result["machine"]
    loads = [r["load"] for r in [*result["fits"], *result["chunks"]] if r.get("load") is not None]
    names = [name for name in LABELS if name != "mgcv-blas"]
    versions = dict.fromkeys(r["version"] for r in cells.values() if r.get("version") and r["method"] in names)
    return (
        f"{m['date']}, {m['cores']} cores of a shared machine ({m['cpu']}; load average before the fits "
        f"{min(loads):.1f} to {max(loads):.1f}), {m['system']}, Python {m['python']}, NumPy {m['numpy']}, "
        f"{', '.join(versions)}. Simulated curves on {result['points']} points, 7 × 7 splines. "
        f"Medians of {result['repeats']} rounds; the methods take turns within a round, and a ratio is the median of "
        "the ratios within rounds of this one run. Times of separate runs are not comparable."
    )


def fit_cell(r: dict[str, Any] | None) -> str:
    if r is None:
        return "not run"
    if "skipped" in r:
        return f"not run ({r['skipped']})"
    ratio = "" if r["method"] == "fdadp" else f" (× {r['ratio']:.2g})" if r["ratio"] < 10 else f" (× {r['ratio']:.0f})"
    return f"{duration(r['seconds'])}{ratio}; {megabytes(r['memory'])}"


def duration(value: float) -> str:
    return f"{value * 1e3:.0f} ms" if value < 0.9995 else f"{value:.3g} s"


def megabytes(value: float | None) -> str:
    return "?" if value is None else "< 1 MB" if value < 1 else f"{value:,.0f} MB"


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def header(cells: list[str]) -> str:
    return row(cells) + "\n" + row(["---"] * len(cells))


def into_page(page: Path, text: str) -> None:
    """Replace what stands between the markers."""
    old = page.read_text(encoding="utf-8")
    marked = re.compile(r"(<!-- benchmarks -->\n).*?(<!-- /benchmarks -->)", re.DOTALL)
    if not marked.search(old):
        raise SystemExit(f"{page} has no lines <!-- benchmarks --> and <!-- /benchmarks -->")
    page.write_text(marked.sub(lambda m: m[1] + text + m[2], old), encoding="utf-8")
