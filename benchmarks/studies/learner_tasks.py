"""Data sets of the learners' experiment, with the public ranges and labels that the learners are given.

Ranges and labels are those of the data sets' own descriptions, not of the rows; missing labels ("?", "unknown") are
labels like the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fdadp.learners.shared.public_encoding import Categorical, Numeric


@dataclass(frozen=True)
class Task:
    """One data set.

    Attributes
    ----------
    name : str
    kind : {"classification", "regression", "clusters", "components"}
    X, y : rows and, where there are any, targets
    X_test, y_test : as X and y, or None: then splits are random, 80 % to train
    features : mapping of name to Numeric or Categorical
        Empty where all columns are numbers of one kind.
    classes : tuple
        Of which the second is the one whose score is ranked.
    delta : float
        Of the experiment's (ε, δ), far below 1/n.
    """

    name: str
    kind: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    features: Mapping[str, Any]
    classes: tuple[Any, ...] = ()
    delta: float = 1e-6

    @property
    def numbers(self) -> list[str]:
        """Columns of numbers."""
        return [name for name, spec in self.features.items() if isinstance(spec, Numeric)]


def _labels(text: str) -> Categorical:
    return Categorical(tuple(text.split()))


ADULT = {
    "age": Numeric(0, 120),
    "education-num": Numeric(1, 16),
    "capital-gain": Numeric(0, 1e5),
    "capital-loss": Numeric(0, 5e3),
    "hours-per-week": Numeric(0, 100),
    "workclass": _labels(
        "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay"
    ),
    "marital-status": _labels(
        "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed"
    ),
    "occupation": _labels(
        "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners Machine-op-inspct "
        "Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support Transport-moving"
    ),
    "relationship": _labels("Husband Not-in-family Other-relative Own-child Unmarried Wife"),
    "race": _labels("Amer-Indian-Eskimo Asian-Pac-Islander Black Other White"),
    "sex": _labels("Female Male"),
    "native-country": _labels(
        "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France Germany Greece "
        "Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan Laos Mexico "
        "Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South Taiwan "
        "Thailand Trinadad&Tobago United-States Vietnam Yugoslavia"
    ),
}
"""Without ``fnlwgt`` (a sampling weight) and ``education`` (the labels of ``education-num``)."""

BANK = {
    "age": Numeric(0, 120),
    "campaign": Numeric(1, 60),
    "pdays": Numeric(0, 1000),
    "previous": Numeric(0, 20),
    "emp.var.rate": Numeric(-5, 5),
    "cons.price.idx": Numeric(90, 100),
    "cons.conf.idx": Numeric(-60, 0),
    "euribor3m": Numeric(0, 6),
    "nr.employed": Numeric(4500, 5500),
    "job": _labels(
        "admin. blue-collar entrepreneur housemaid management retired self-employed services student technician "
        "unemployed unknown"
    ),
    "marital": _labels("divorced married single unknown"),
    "education": _labels(
        "basic.4y basic.6y basic.9y high.school illiterate professional.course university.degree unknown"
    ),
    "default": _labels("no unknown yes"),
    "housing": _labels("no unknown yes"),
    "loan": _labels("no unknown yes"),
    "contact": _labels("cellular telephone"),
    "month": _labels("jan feb mar apr may jun jul aug sep oct nov dec"),
    "day_of_week": _labels("mon tue wed thu fri"),
    "poutcome": _labels("failure nonexistent success"),
}
"""Without ``duration``, which is known only after the call."""


def _adult(download: bool) -> Task:
    from fdadp.datasets import load_adult

    data = load_adult(download=download)
    columns = list(ADULT)
    assert data.X_test is not None
    return Task(
        "adult",
        "classification",
        data.X[columns],
        data.y,
        data.X_test[columns],
        data.y_test,
        ADULT,
        ("<=50K", ">50K"),
    )


def _bank(download: bool) -> Task:
    from fdadp.datasets import load_bank_marketing

    data = load_bank_marketing(download=download)
    return Task("bank", "classification", data.X[list(BANK)], data.y, None, None, BANK, ("no", "yes"))


def _diabetes(download: bool) -> Task:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return Task("diabetes", "regression", X, y, None, None, {}, delta=1e-5)


def _digits(download: bool) -> Task:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Task("digits", "components", X / 16, y, None, None, {}, delta=1e-5)


TASKS: Mapping[str, Callable[[bool], Task]] = {"adult": _adult, "bank": _bank, "diabetes": _diabetes, "digits": _digits}
