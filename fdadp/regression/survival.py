"""Time to an event explained by any terms: hazards of periods, by regressions of person-periods."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from fdadp._common.argument_checks import numbers, one_of
from fdadp._common.calling_language import advice
from fdadp._common.estimators import Estimator, ShownByTable, check_is_fitted, clone
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.containers.open_curves import is_foreign, opened_table
from fdadp.privacy import Privacy
from fdadp.privacy._unaccounted_fits import Kin, kin_of
from fdadp.private.release.mechanisms import Mechanism
from fdadp.regression.private.chunked_tables import JoinedTables
from fdadp.regression.reading.person_periods import (
    EXPOSURE,
    MOST_PERIODS,
    PERIOD,
    Followed,
    Periods,
    expanded,
    expanded_privately,
    joined_privately,
    of_persons,
    times_of_events,
)
from fdadp.regression.reading.table_columns import ColumnTable
from fdadp.regression.scalar import ScalarRegression

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fdadp.functional.tables.printed_tables import PrintedSummary
    from fdadp.privacy.account.ledger import Ledger
    from fdadp.private.plan.budget_plan import Plan

_NAME = r"\s*(`[^`]+`|[^\W\d]\w*)\s*"
_SURV = re.compile(rf"\s*Surv\({_NAME},{_NAME}(?:,{_NAME})?\)\s*~(.+)", re.DOTALL)
_SHARED = ("smoothing", "family", "missing", "progress", "privacy", "mechanism")
FEW_PERIODS = 10
"""Up to which each period has a constant of its own, where nothing else is said."""
LEAST_SMOOTH = 4


class SurvivalFormula(NamedTuple):
    """``Surv(time, event) ~ right`` or ``Surv(entry, time, event) ~ right``: columns, and the text on the right."""

    time: str
    event: str
    right: str
    entry: str | None = None

    @property
    def followed(self) -> tuple[str, ...]:
        """Columns of time and event, and of entry where there is one."""
        return (self.time, self.event) if self.entry is None else (self.time, self.event, self.entry)

    @classmethod
    def read(cls, formula: Any) -> SurvivalFormula:
        """Read the formula; raises InputError where its left side is neither of the two."""
        found = _SURV.fullmatch(formula) if isinstance(formula, str) else None
        if found is None:
            raise InputError(
                "formula must be text such as 'Surv(time, event) ~ lf(X) + age', or 'Surv(entry, time, event) ~ age' "
                f"where rows are not seen from the beginning, got {formula!r}"
            )
        *columns, right = found.groups()
        columns = [column.strip("`") for column in columns if column is not None]
        twice = next((column for column in columns if columns.count(column) > 1), None)
        if twice is not None:
            raise InputError(f"formula must have other columns at each place of Surv(), got {twice} twice")
        *entry, time, event = columns
        return cls(time, event, right.strip(), *entry)

    def of_periods(self, baseline: str, periods: Periods) -> str:
        """The formula of person-periods."""
        added = [baseline] if baseline else []
        if periods.rule == "exposure":
            added.append(f"offset(log({EXPOSURE}))")
        event = self.event if self.event.isidentifier() else f"`{self.event}`"
        return " + ".join([f"{event} ~ {self.right}", *added])


def _rows(followed: Followed) -> str:
    """How many rows a fit has, which are persons where all were seen from the beginning."""
    return f"{followed.time.size} {'rows' if np.isfinite(followed.entry).any() else 'persons'}"


@dataclass(kw_only=False, eq=False, repr=False)
class SurvivalRegression(ShownByTable, Kin, Estimator):
    """Regression of the time to an event on curves, numbers and labels: the hazard of each period by terms.

    A person has a row for each period that it was seen in, and :class:`fdadp.ScalarRegression` is fitted to these rows.
    Covariates of a row of data are constant while it was seen. With ``family="poisson"`` and periods that end at the
    distinct times of events it is Cox's regression with Breslow's ties.

    Parameters
    ----------
    formula : str
        As ``"Surv(time, event) ~ lf(X) + age"``: how long each person was seen, and whether that ended with the event
        (1 or True) or was censored (0 or False). With ``Surv(entry, time, event)`` a row was seen after `entry` and
        until `time`. This is for persons who come under observation late. It is also for covariates that change, where
        a person has a row for each stretch of time. The number of the period is a column ``period``: with
        ``age:period`` the effect of age changes in time.
    times : array_like of shape (K + 1,), optional
        Increasing: where time begins, and the end of each of at most 100 periods. Who was seen longer is censored at
        the last one. Default: 0 and the times of events; of more than 100 their quantiles, but for Cox's regression.
        A private fit needs them, chosen without looking at the data.
    family : {"binomial", "poisson"}
        ``"binomial"``: the log-odds of the event in a period are linear in the terms; times of entry and of censoring
        are taken to the nearest end of a period. ``"poisson"``: proportional hazards. With a step at each time of
        events (the default) it is Cox's regression; in other periods the hazard is constant, and persons count as long
        as they were seen. Beyond 100 times there are no person-periods, but the partial likelihood: with `baseline`
        ``"auto"`` or ``"factor"``, without groups and without the number of the period in the formula. In a private
        fit the event has the probability 1 - exp(-λ) in a period, λ its hazard, for responses are cut at 1; entry and
        censoring are taken to the nearest end of a period.
    baseline : {"auto", "factor", "smooth", "linear"}
        How the hazard depends on the period: a constant for each, a smooth function of its number, or a line.
        ``"auto"``: constants for ``"poisson"`` and for up to 10 periods with and without events; else smooth, or a
        line for fewer than 4. In a private fit, where each coefficient costs budget, a line.
    smoothing, missing, progress, privacy, mechanism
        As of :class:`fdadp.ScalarRegression`.
    bounds : mapping of str, optional
        What is public of each covariate of a private fit. Those of time and event follow from `times`.
    person_rows : {"sum"}
        Each period counts once. No other law has hazards: rows that end with the event are a martingale only summed.

    Attributes
    ----------
    model_ : ScalarRegression
        Of the person-periods, with ``coef``, ``vcov``, ``bands``, ``test_terms``, ``plot``. Of Cox's regression at more
        than 100 times of the persons: the constant is the logarithm of the cumulated hazard at the last time, and
        residuals are martingale residuals.
    times_ : ndarray of shape (K + 1,)
    baseline_ : str
        Term of the period, ``""`` where there is one period.
    ledger_ : Ledger or None
        Of a private fit.

    References
    ----------
    Cox (1972), doi:10.1111/j.2517-6161.1972.tb00899.x; Breslow (1974), doi:10.2307/2529620; Tutz and Schmid (2016),
    Modeling Discrete Time-to-Event Data, doi:10.1007/978-3-319-28158-2.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import SurvivalRegression
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(size=400)
    >>> t, c = rng.exponential(np.exp(-0.5 * age)), rng.uniform(0, 3, 400)
    >>> people = {"age": age, "years": np.minimum(t, c), "died": (t <= c) * 1}
    >>> model = SurvivalRegression("Surv(years, died) ~ age", family="poisson").fit(people)
    >>> model.predict_survival({"age": np.array([-1.0, 1.0])}, times=[0.5, 1.0]).shape
    (2, 2)
    """

    formula: str
    times: ArrayLike | None = None
    family: str = "binomial"
    baseline: str = "auto"
    smoothing: str | ArrayLike = "reml"
    missing: str | Mapping[str, str] = "auto"
    progress: bool | str = "auto"
    privacy: Privacy | None = None
    bounds: Mapping[str, Any] | None = None
    mechanism: str | Mechanism = "dp-aff"
    person_rows: str = "sum"

    k = "auto"
    _of_curves = False
    _default_response = "y"
    _n_unpenalized = None
    _fitted = "model_"
    _noise = None
    _said = tuple[str, ...]()

    def fit(
        self,
        data: Any,
        *,
        grids: Mapping[str, ArrayLike] | None = None,
        groups: ArrayLike | str | None = None,
    ) -> SurvivalRegression:
        """Fit the model.

        Parameters
        ----------
        data : DataFrame or mapping of str
            A row for each person, or for each stretch of time of one: covariates, time and event. Of a private fit one
            data frame, or a mapping of arrays and curves without row labels.
        grids : mapping of str to array_like, optional
            Grids of plain arrays, by column.
        groups : array_like of shape (n,) or str, optional
            The person of every row, where persons may have several rows, such as one for each stay. Standard errors
            take groups as independent. In a private fit all rows of a person are protected together, and at most as
            many of its person-periods count as there are periods. Default: each row is a person.

        Returns
        -------
        self

        Raises
        ------
        InputError, PrivacyError
            A column, a setting or a number of person-periods that does not suit. In a private fit all of it is public,
            and nothing was read.
        """
        names = self._checked()
        data = opened_table(data) if is_foreign(type(data)) else data
        if self.privacy is not None:
            self._fit_privately(names, data, grids, groups)
            return self
        table = ColumnTable(data, grids)
        followed = Followed.read(table, names.followed)
        if self._keep_steps(names, table, followed, groups):
            return self
        periods = self._periods(followed)
        rows, responses, ids = expanded(
            table, followed, periods, names.followed, names.right, missing=self.missing, ids=groups
        )
        baseline = self._term(periods.count, responses)
        law = {} if ids is None else {"person_rows": "sum"}
        model = self._inner(names.of_periods(baseline, periods), **law).fit(rows, groups=ids)
        died, seen = int((responses == 1).sum()), int(np.isfinite(responses).sum())
        chosen = "as given" if self.times is not None else "at the times of events"
        if self.times is None and np.unique(followed.time[followed.event == 1]).size > MOST_PERIODS:
            chosen = "at quantiles of the times of events"
        said = (f"{_rows(followed)}, {died} events, {seen} person-periods in {periods.count} periods, {chosen}.",)
        self._keep(model, periods.edges, baseline, said)
        return self

    def _keep_steps(self, names: SurvivalFormula, table: ColumnTable, followed: Followed, groups: Any) -> bool:
        """Fit Cox's regression with a step at each time of events, where these are more than periods may be."""
        if self.family != "poisson" or self.times is not None or groups is not None:
            return False
        ends = times_of_events(followed.time, followed.event)
        if ends.size <= MOST_PERIODS or self.baseline not in ("auto", "factor"):
            return False
        from fdadp.regression.cox_as_poisson import fit_at_all_times

        edges = np.concatenate(([0.0], ends))
        model = self._inner(names.of_periods("", Periods(edges, "exposure")))
        fitted = fit_at_all_times(
            model,
            lambda exposure: of_persons(table, followed, names.followed, names.right, exposure, self.missing),
            followed,
        )
        if fitted is None:
            return False
        model._keep(fitted)
        died = int((followed.event == 1).sum())
        said = f"{_rows(followed)}, {died} events at {ends.size} times, by Cox's partial likelihood."
        self._keep(model, edges, "", (said,))
        return True

    def _checked(self) -> SurvivalFormula:
        """Check settings, all of which are public; returns the formula."""
        names = SurvivalFormula.read(self.formula)
        one_of(self.family, "family", ("binomial", "poisson"))
        one_of(self.baseline, "baseline", ("auto", "factor", "smooth", "linear"))
        if self.person_rows != "sum":
            raise InputError(
                "person_rows must be 'sum' for times to an event, whose rows end with the event: by another law they "
                f"estimate no hazard, got {self.person_rows!r}"
            )
        if self.bounds is not None and not isinstance(self.bounds, Mapping):
            raise InputError(f"bounds must be a mapping of columns to ranges or levels, got {self.bounds!r}")
        if self.privacy is not None and not isinstance(self.privacy, Privacy):
            raise InputError(f"privacy must be a Privacy or None, got {type(self.privacy).__name__}")
        if self.times is None and self.privacy is not None:
            example = advice("times=range(0, 9)", r="times = 0:8", shell="--times 0:8:9")
            raise PrivacyError(
                f"times must give public ends of periods in a private fit, such as {example}, got None; times taken "
                "from the data would not be private"
            )
        return names

    def _periods(self, followed: Followed | None) -> Periods:
        rule: Literal["half", "exposure"] = "exposure" if self.family == "poisson" and self.privacy is None else "half"
        if self.times is not None or followed is None:
            return Periods.given(self.times, rule)
        return Periods.of_events(followed.time, followed.event, rule)

    def _term(self, K: int, responses: FloatArray | None) -> str:
        """The term of the period; of ordinary fits constants are refused where a period has none that is finite."""
        if K == 1:
            return ""
        finite = True
        if responses is not None:
            died, lived = (responses == 1).any(axis=0), (responses == 0).any(axis=0)
            finite = bool((died & (lived | (self.family == "poisson"))).all())
        kind = self.baseline
        if kind == "auto":
            few = self.family == "poisson" or K <= FEW_PERIODS
            smooth = responses is not None and K >= LEAST_SMOOTH
            kind = "factor" if responses is not None and finite and few else "smooth" if smooth else "linear"
        if kind == "factor" and not finite:
            raise InputError(
                "baseline must be 'smooth' or 'linear', or times have fewer periods, where a period has no event or "
                "(family='binomial') nobody without it: its constant is not finite"
            )
        if kind == "smooth" and K < LEAST_SMOOTH:
            raise InputError(f"baseline must be 'factor' or 'linear' with fewer than {LEAST_SMOOTH} periods, got {K}")
        return {"factor": f"C({PERIOD})", "smooth": f"s({PERIOD}, k={min(K, 10)})", "linear": PERIOD}[kind]

    def _inner(self, formula: str, **private: Any) -> ScalarRegression:
        shared = {name: getattr(self, name) for name in _SHARED}
        return ScalarRegression(formula, **shared, **private)

    def _fit_privately(self, names: SurvivalFormula, data: Any, grids: Any, groups: Any) -> None:
        privacy = self.privacy
        assert privacy is not None
        if privacy.unit == "row":
            raise PrivacyError("privacy must not have unit='row': the person-periods of a row are protected together")
        if privacy.unit == "person":
            privacy.check_unit(groups)
        model, periods, baseline = self._private_model(names)
        known = privacy.bounds_with(model.bounds)
        if isinstance(data, JoinedTables):
            rows: Any = joined_privately(data, known, periods, names.followed)
            fit = partial(model.fit_chunks, rows, grids=grids, groups=groups or data.id)
        else:
            table, persons = expanded_privately(data, grids, known, periods, names.followed, groups)
            fit = partial(model.fit, table, groups=persons, by="position")
        try:
            fit()
        finally:  # warnings may be errors
            if hasattr(model, "fitted_"):
                ends = periods.edges
                said = f"{periods.count} public periods from {ends[0]:g} to {ends[-1]:g}."
                self._keep(model, ends, baseline, (said,))

    def _private_model(self, names: SurvivalFormula) -> tuple[ScalarRegression, Periods, str]:
        """The private regression of person-periods, by public settings alone."""
        periods = self._periods(None)
        K, baseline = periods.count, self._term(periods.count, None)
        if self.privacy is not None and self.privacy.n is not None:
            periods.refuse_many(self.privacy.n * K)
        bounds: dict[str, Any] = {**(self.bounds or {}), names.event: [0, 1] if self.family == "binomial" else (0, 1)}
        if baseline:
            bounds[PERIOD] = list(range(1, K + 1)) if baseline == f"C({PERIOD})" else (1, K)
        model = self._inner(names.of_periods(baseline, periods), bounds=bounds, person_rows="sum", max_rows=K)
        model._noise, model._kin = self._noise, kin_of(self)
        return model, periods, baseline

    def plan(self, grids: Mapping[str, ArrayLike | int] | None = None, *, n: float | None = None) -> Plan:
        """Plan a private fit from public values alone, as :meth:`fdadp.ScalarRegression.plan`.

        Parameters
        ----------
        grids : mapping of str to (array_like or int)
            Points of all columns of curves, or their number.
        n : float, optional
            Number of persons to plan for, where ``privacy`` does not declare one.

        Raises
        ------
        PrivacyError, InputError
            As :meth:`fit` would before it reads the data.
        """
        names = self._checked()
        if self.privacy is None:
            raise InputError("privacy must be a Privacy for a plan, got None")
        return self._private_model(names)[0].plan(grids, groups=True, n=n)

    def _keep(self, model: ScalarRegression, edges: FloatArray, baseline: str, said: tuple[str, ...]) -> None:
        self.model_, self.times_, self.baseline_, self._said = model, edges, baseline, said

    @property
    def ledger_(self) -> Ledger | None:
        """Releases of a private fit and their assumptions; None without privacy."""
        return self._asked().ledger_

    def _asked(self) -> ScalarRegression:
        check_is_fitted(self, "model_")
        return self.model_

    # --- predictions

    def predict(self, data: Any, *, type: str = "risk", grids: Mapping[str, ArrayLike] | None = None) -> Any:
        """Predict for new persons.

        Parameters
        ----------
        data : DataFrame or mapping
            As in :meth:`fit`, without time and event.
        type : {"risk", "hazard", "link"}
            The probability of the event until the last of `times_`, shape (n,); the hazard in each period, or its
            linear predictor, shape (n, K), in the kinds of :meth:`predict_survival`.
        grids : mapping of str to array_like, optional
            Grids of plain arrays.
        """
        one_of(type, "type", ("risk", "hazard", "link"))
        table = _NewPersons.of(data, grids)
        if type == "risk":
            values = 1 - self._survival(table, np.array([self.times_.size - 1]))[:, 0]
            return values if table.index is None else pd.Series(values, index=table.index, name="risk")
        return table.shown(self._by_period(table, "link" if type == "link" else "response"), self.times_[1:])

    def predict_survival(
        self, data: Any, times: ArrayLike | None = None, *, grids: Mapping[str, ArrayLike] | None = None
    ) -> Any:
        """Predict survival curves of new persons.

        Parameters
        ----------
        data, grids
            As in :meth:`predict`.
        times : array_like of shape (T,), optional
            Default: `times_`, the ends of periods and where time begins. Between the ends of two periods survival is
            that at the first of them.

        Returns
        -------
        DataFrame, FDataGrid or ndarray of shape (n, T)
            A data frame with the labels of the rows where `data` is one. Curves where a column holds curves of
            scikit-fda. Else an array.

        Raises
        ------
        InputError
            Times outside those of the fit; columns as of :meth:`fit`.
        """
        self._asked()
        at = self.times_ if times is None else np.atleast_1d(numbers(times, "times"))
        first, last = self.times_[[0, -1]]
        if at.ndim != 1 or not ((at >= first) & (at <= last)).all():
            raise InputError(f"times must lie within {first:g} and {last:g}, got {times!r}")
        table = _NewPersons.of(data, grids)
        return table.shown(self._survival(table, np.searchsorted(self.times_, at, side="right") - 1), at)

    def _survival(self, table: _NewPersons, after: IntArray | None = None) -> FloatArray:
        """After numbers of periods (m,), by default after 0 to K of them; shape (n, m)."""
        steps, places = self._asked().fitted_.steps, np.arange(self.times_.size) if after is None else after
        if steps is not None:
            passed = np.concatenate(([0.0], np.cumsum(steps[1])))[places]
            return np.asarray(np.exp(-self._cumulated(table, "response")[:, None] * passed))
        hazard = self._by_period(table, "response")
        alive = np.exp(-np.cumsum(hazard, axis=1)) if self.family == "poisson" else np.cumprod(1 - hazard, axis=1)
        return np.asarray(np.column_stack((np.ones(table.n), alive))[:, places])

    def _cumulated(self, table: _NewPersons, type: str) -> FloatArray:
        """Of Cox's regression: the cumulated hazard of persons (n,) at the last time, or its logarithm ("link")."""
        return np.asarray(self._asked().predict(table.in_period(1, 1.0), type=type, grids=table.grids))

    def _by_period(self, table: _NewPersons, type: str) -> FloatArray:
        model = self._asked()
        steps = model.fitted_.steps
        if steps is not None:
            link = self._cumulated(table, "link")[:, None] + np.log(steps[1])
            return np.asarray(link if type == "link" else np.exp(link))
        periods = range(1, self.times_.size)
        width = np.diff(self.times_)
        columns = [model.predict(table.in_period(k, width[k - 1]), type=type, grids=table.grids) for k in periods]
        return np.column_stack([np.asarray(column) for column in columns])

    # --- tables, pictures, files

    def baseline_hazard(self) -> pd.DataFrame:
        """Hazards and survival where all terms but that of the period are 0.

        Returns
        -------
        DataFrame
            A row for each period: ``start``, ``end``, ``hazard``, and ``survival`` at its end.
        """
        model = self._asked()
        K = self.times_.size - 1
        eta = np.full(K, float(model.coef("(Intercept)")["value"].iloc[0]))
        number = np.arange(1.0, K + 1)
        kind = self._kind()
        if kind == "linear":
            eta = eta + number * float(model.coef(PERIOD)["value"].iloc[0])
        elif self.baseline_:
            name = PERIOD if kind == "factor" else f"s({PERIOD})"
            eta = eta + model.coef(name, at={PERIOD: number})["value"].to_numpy()
        if model.fitted_.steps is not None:
            eta = eta + np.log(model.fitted_.steps[1])
        elif EXPOSURE in (model.fitted_.offset or ""):
            eta = eta + np.log(np.diff(self.times_))
        hazard = model.fitted_.family.mean(eta)
        alive = np.exp(-np.cumsum(hazard)) if self.family == "poisson" else np.cumprod(1 - hazard)
        ends = self.times_
        return pd.DataFrame({"start": ends[:-1], "end": ends[1:], "hazard": hazard, "survival": alive})

    def plot_survival(self, data: Any = None, *, grids: Mapping[str, ArrayLike] | None = None) -> Figure:
        """Picture of the survival curves of new persons; by default of the baseline (:meth:`baseline_hazard`)."""
        from fdadp.plot._matplotlib_figures import panels

        if data is None:
            curves = np.concatenate(([1.0], self.baseline_hazard()["survival"]))[:, None]
        else:
            table = _NewPersons.of(data, grids)
            curves = self._survival(table).T
        figure, (axis,) = panels(1, size=(5.0, 3.4))
        for curve in curves.T:
            axis.step(self.times_, curve, where="post")
        name = SurvivalFormula.read(self.formula).time
        axis.set(xlabel=name, ylabel="survival" if data is not None else "survival, baseline", ylim=(0, 1.02))
        return figure

    def summary(self) -> PrintedSummary:
        """Tables of the fit of person-periods, with the numbers of persons, events and periods."""
        summary = self._asked().summary()
        law = "log-odds of the event in a period" if self.family == "binomial" else "logarithm of the hazard"
        steps = self._asked().fitted_.steps is not None
        baseline = "a step at each time of events" if steps else self.baseline_ or "one constant"
        own = [*self._said, f"Terms add to the {law}; baseline: {baseline}."]
        return replace(summary, notes=[*own, *summary.notes])

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a pickle-free file, as :meth:`fdadp.ScalarRegression.save`; return its path."""
        from fdadp.regression.fitted.model_files import save

        fitted = self._asked().fitted_
        times = None if fitted.steps is not None else self.times_.tolist()
        return save(fitted, clone(self).set_params(times=times, baseline=self._kind()), path)

    def _kind(self) -> str:
        return {"": "auto", PERIOD: "linear", f"C({PERIOD})": "factor"}.get(self.baseline_, "smooth")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SurvivalRegression:
        """Read a model that :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            Not such a file, or one of another class or version.
        """
        from fdadp.regression.fitted.model_files import load

        model, fitted = load(path, cls)
        if fitted.steps is not None:
            edges, baseline = np.concatenate(([0.0], fitted.steps[0])), ""
            periods = Periods(edges, "exposure")
        else:
            edges = numbers(model.times, "times")
            baseline, periods = model._term(edges.size - 1, None), model._periods(None)
        inner = model._inner(SurvivalFormula.read(model.formula).of_periods(baseline, periods))
        inner._keep(fitted)
        model._keep(inner, edges, baseline, (f"{edges.size - 1} periods; read from a file.",))
        own: SurvivalRegression = model
        return own


@dataclass(frozen=True)
class _NewPersons:
    """Rows of persons to predict, in each period.

    Attributes
    ----------
    data : DataFrame or dict
    n : int
    grids : mapping or None
    index : Index or None
        Labels of the rows, where they have any.
    of_curves : bool
        Whether a column holds curves of scikit-fda.
    """

    data: Any
    n: int
    grids: Any
    index: pd.Index[Any] | None
    of_curves: bool

    @classmethod
    def of(cls, data: Any, grids: Any) -> _NewPersons:
        data = opened_table(data) if is_foreign(type(data)) else data
        table = ColumnTable(data, grids)
        n = table.n_rows()
        if not isinstance(data, pd.DataFrame):
            data = {name: data[name] for name in table.names}
        held = [] if isinstance(data, pd.DataFrame) else list(data.values())
        of_curves = any(type(own).__module__.split(".")[0] == "skfda" for own in held)
        index = None if table.index is None or isinstance(table.index, pd.RangeIndex) else table.index
        return cls(data, n, grids, index, of_curves)

    def in_period(self, k: int, width: float) -> Any:
        """The table with the number of a period, of which all is the exposure."""
        own = {PERIOD: float(k), EXPOSURE: width}
        if isinstance(self.data, pd.DataFrame):
            return self.data.assign(**own)
        columns = {name: np.full(self.n, value) for name, value in own.items()}
        if self.index is not None:
            return {**self.data, **{name: pd.Series(value, index=self.index) for name, value in columns.items()}}
        return {**self.data, **columns}

    def shown(self, values: FloatArray, times: FloatArray) -> Any:
        """A row of values for each person, in the kind of the table."""
        if isinstance(self.data, pd.DataFrame) or self.index is not None:
            index = self.data.index if isinstance(self.data, pd.DataFrame) else self.index
            return pd.DataFrame(values, index=index, columns=pd.Index(times, name="time"))
        if self.of_curves and times.size > 1 and (np.diff(times) > 0).all():
            from skfda import FDataGrid

            return FDataGrid(values, times)
        return values
