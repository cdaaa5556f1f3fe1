"""Tests of random effects in fitted models: the fit and its residuals as input for the solver's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.tables.records import Records
from fdadp.solve.errors.leave_one_out import Residuals
from fdadp.solve.errors.term_tests import TermTest, flip_test, score_test
from fdadp.terms.numbers.labels import levels_of
from fdadp.terms.on_functions import OnFunctions
from fdadp.terms.spec import TermDesign

if TYPE_CHECKING:
    from fdadp.regression.fitted.errors import CoefficientErrors

FEW = 3
"""Least number of curves for each direction that is projected out for the other terms."""


def numbers_tested(errors: CoefficientErrors, design: TermDesign, which: IntArray) -> TermTest | None:
    """The exact score test of a term whose one penalty has no null space; None for other terms."""
    penalties = design.penalties
    if len(penalties) != 1 or not (penalties > 0).all():
        return None
    with one_blas_thread():
        return score_test(errors.fit, which, errors.settings.family.known_scale)


def curves_tested(errors: CoefficientErrors, design: TermDesign) -> TermTest | None:
    """The test by flipped signs of a random effect on curves; None for other terms.

    NaN if the model keeps no residuals of single curves, for example after a fit to chunks.
    """
    levels = levels_of(_of(design))
    if levels is None:
        return None
    own, form = errors.residuals, errors.fit.form
    if not isinstance(own, Residuals):
        return TermTest(np.nan, len(levels) - 1, np.nan)
    tested = _codes(design, own.records)
    units, added = np.arange(own.n) if errors.groups is None else errors.groups, [design]
    if not _within(units, tested):
        units = np.arange(own.n)
    for other in form.designs:  # a finer random effect is part of the errors
        if other is not design and levels_of(_of(other)) is not None:
            finer = _codes(other, own.records)
            if _within(finer, tested) and finer.max() < units.max():
                units, added = finer, [design, other]
    with one_blas_thread():
        left = _along_term(errors, own, design, added)
        return flip_test(left, _known(form.designs, own.records), tested, units)


def _of(design: TermDesign) -> TermDesign:
    return design.of if isinstance(design, OnFunctions) else design


def _codes(design: TermDesign, records: Records) -> IntArray:
    """Number of the level of each record."""
    levels = levels_of(_of(design))
    assert levels is not None
    return np.asarray(levels.codes(records.labels(levels.column).tolist()), dtype=np.int64)


def _within(finer: IntArray, coarser: IntArray) -> bool:
    """Whether all records of a number of the one have the same number of the other, and some numbers of it have two."""
    pairs = len({*zip(finer.tolist(), coarser.tolist(), strict=True)})
    return len(set(coarser.tolist())) < len(set(finer.tolist())) == pairs


def _along_term(errors: CoefficientErrors, own: Residuals, design: TermDesign, added: list[TermDesign]) -> FloatArray:
    """Residuals without the added terms, in the directions along t in which the term varies, (n, r)."""
    fit, form = errors.fit, errors.fit.form
    of = [(d, form.functions(d, fit.coefficients[form.slices[form.designs.index(d)]])) for d in added]
    turn = np.linalg.qr(np.ascontiguousarray(design.along.design(form.t)))[1]
    weights = 1.0 if own.weights is None else own.weights
    if own.points is None:
        back = sum(d.features(own.records) @ b @ d.along.design(form.t).T for d, b in of)
        along = np.linalg.solve(turn.T, design.along.design(form.t).T).T
        return np.asarray(((own.values + back) * weights) @ along)
    record, t = own.points.record, own.points.t
    back = sum(np.einsum("ij,ij->i", (d.features(own.records) @ b)[record], d.along.design(t)) for d, b in of)
    along = np.linalg.solve(turn.T, design.along.design(t).T).T
    out = np.zeros((own.n, along.shape[1]))
    np.add.at(out, record, ((own.values + back) * weights)[:, None] * along)
    return out


def _known(designs: tuple[TermDesign, ...], records: Records) -> FloatArray:
    """Features of the terms, the constant first. Many penalised features are reduced to their largest directions."""
    sure: list[FloatArray] = [np.ones((records.n, 1))]
    smooth: list[FloatArray] = []
    for design in designs:
        if design.columns and design.separable and levels_of(_of(design)) is None:
            (smooth if len(design.own_penalties) else sure).append(design.features(records))
    most = max(records.n // FEW - sum(own.shape[1] for own in sure), len(smooth))
    if sum(own.shape[1] for own in smooth) > most:
        smooth = [np.linalg.svd(own, full_matrices=False)[0][:, : most // len(smooth)] for own in smooth]
    return np.hstack([*sure, *smooth])
