"""Summary tables of a fit, as statsmodels' ``Summary`` (text, HTML, LaTeX)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable

from fdadp._common.promised import promised
from fdadp.functional.gaps import GAPS
from fdadp.functional.tables.axis import text_of_grid

if TYPE_CHECKING:
    from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction


def summarise(model: AdditiveFunctionOnFunction) -> Summary:
    """Build the tables: the fit as a whole, its components, and the ledger's first line where there is one."""
    private = model.privacy_ is not None
    criterion = model.smoothing.upper() if isinstance(model.smoothing, str) else "fixed smoothing"
    if private:
        criterion = "empirical Bayes"
    low, high = model.x_range_
    facts = [
        ("Curves", f"{model.n_curves_}", "Components K", f"{len(model.edf_)}"),
        (
            "Grid of X",
            text_of_grid(model.s_, model.fitted_.x.unit, "s"),
            "Grid of Y",
            text_of_grid(model.t_, model.fitted_.y.unit, "t"),
        ),
        ("Range of X", f"{low:.4g} to {high:.4g}", "Basis", f"{model.coef_.shape[1]} x {model.coef_.shape[2]}"),
        ("R-squared", f"{model.r2_:.4f}", "Noise variance", f"{model.noise_variance_:.4g}"),
        ("Smoothing", criterion, "Total edf", f"{model.edf_.sum():.2f}"),
    ]
    rows = [
        (f"{k + 1}", f"{100 * share:.1f} %", f"{edf:.2f}", f"{sp[0]:.4g}", f"{sp[1]:.4g}", f"{score:.6g}")
        for k, (share, edf, sp, score) in enumerate(
            zip(
                model.explained_variance_ratio_,
                model.edf_,
                model.smoothing_parameters_,
                model.criterion_,
                strict=True,
            )
        )
    ]
    headers = ["component", "variance of Y", "edf", "lambda x", "lambda s"]
    if private:  # no smoothing parameters: the prior and its released scale take their place
        headers = headers[:3]
    else:
        headers.append("GCV" if criterion == "GCV" else "-REML")
    result = Summary()
    result.tables.append(SimpleTable(facts, title="Additive function-on-function regression"))
    result.tables.append(SimpleTable([row[: len(headers)] for row in rows], headers=headers))
    lines = []
    if model.ledger_ is None:
        lines.append("Fitted without privacy: do not release.")
    else:
        lines.append(model.ledger_.headline)
        if model.privacy_ is not None:
            budget = model.privacy_
            known = promised(budget.epsilon, budget.delta)
            lines.append(f"{known}, adjacency {budget.stated_adjacency}; details: ledger_")
        if private:
            lines.append(f"Gaps of X {GAPS[model._gaps]}, within each row; of Y a row counts where it was observed.")
    if model.joined_ is not None:
        lines.append(f"Rows: {model.joined_}.")
    result.add_extra_txt([*lines, *(f"Note: {note}." for note in model.notes_)])
    return result
