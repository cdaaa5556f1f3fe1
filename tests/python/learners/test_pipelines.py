"""What may stand beside a private learner in a Pipeline: steps that learn without privacy are found by name."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from fdadp import AdditiveFunctionOnFunction, Privacy, ScalarRegression, choose_privately
from fdadp.errors import InputError, PrivacyError
from fdadp.learners import (
    DPPCA,
    DPGaussianNB,
    DPLinearRegression,
    DPLogisticRegression,
    Numeric,
    PublicEncoder,
    check_pipeline,
)
from fdadp.privacy import Budget
from fdadp.published import PublishedGaussianNB, PublishedNoise, PublishedPCA
from fdadp.summaries import PrivateFPCA

LEARN = [
    RBFSampler(),  # last bits of its products may depend on the other rows
    StandardScaler(),
    MinMaxScaler(),
    RobustScaler(),
    QuantileTransformer(),
    PCA(2),
    SimpleImputer(),
    SelectKBest(),
    VarianceThreshold(),
    OneHotEncoder(),
    TargetEncoder(),
    KBinsDiscretizer(),
    RandomTreesEmbedding(),
    GaussianProcessRegressor(),  # its tag says that it needs no fit
    PublishedPCA(data_norm=1.0, n_components=1),
]
LEARN_NOTHING = [
    FunctionTransformer(np.tanh),
    Normalizer(),
    Binarizer(),
    HashingVectorizer(),
    PolynomialFeatures(),
    PublicEncoder([Numeric(0, 1)]),
    "passthrough",
    None,
]


def private(**more):
    return DPGaussianNB(**{"classes": [0, 1], "bounds": (-2, 2), **more})


def of(step):
    return Pipeline([("before", step), ("learner", private())])


@pytest.mark.parametrize("step", LEARN, ids=lambda s: type(s).__name__)
def test_a_step_that_learns_from_rows_is_refused_by_name(step):
    with pytest.raises(PrivacyError, match=rf"before \({type(step).__name__}\)"):
        check_pipeline(of(step))


@pytest.mark.parametrize("step", LEARN_NOTHING, ids=lambda s: type(s).__name__)
def test_a_step_of_each_row_by_itself_passes(step):
    model = of(step)
    assert check_pipeline(model) is model


def test_what_it_passes_is_a_function_of_each_row_by_itself():
    """Of the transformers of numbers that pass: rows fitted together are what they are alone."""
    X = np.random.default_rng(0).uniform(0, 1, (20, 3))
    for step in (
        FunctionTransformer(np.tanh),
        Normalizer(),
        Binarizer(),
        PolynomialFeatures(),
    ):
        check_pipeline(of(step))
        together = step.fit_transform(X)
        for i in range(len(X)):
            np.testing.assert_allclose(step.fit_transform(X[[i]])[0], together[i], rtol=1e-14)


def test_steps_inside_of_steps_are_found():
    union = FeatureUnion([("fine", Normalizer()), ("pca", PCA(1))])
    columns = ColumnTransformer([("scale", StandardScaler(), [0])], remainder=union)
    with pytest.raises(PrivacyError, match=r"all__scale \(StandardScaler\), all__remainder__pca \(PCA\) do:"):
        check_pipeline(Pipeline([("all", columns), ("learner", private())]))
    with pytest.raises(PrivacyError, match=r"columns of all__scale must be named"):
        by_type = ColumnTransformer([("scale", Normalizer(), make_column_selector(dtype_include=float))])
        check_pipeline(Pipeline([("all", by_type), ("learner", private())]))
    line = DPLinearRegression(bounds=(-1, 1), bounds_y=(-1, 1))
    with pytest.raises(PrivacyError, match=r"transformer \(StandardScaler\)"):
        check_pipeline(TransformedTargetRegressor(line, transformer=StandardScaler()))
    check_pipeline(TransformedTargetRegressor(line, func=np.log1p, inverse_func=np.expm1))


@pytest.mark.parametrize(
    "last",
    [
        LogisticRegression(),
        PublishedGaussianNB(),
        CalibratedClassifierCV(private()),
        GridSearchCV(private(), {"epsilon": [0.1, 1.0]}),
        ScalarRegression("y ~ x"),
        AdditiveFunctionOnFunction(privacy=Privacy(1.0), mechanism=PublishedNoise()),
    ],
    ids=lambda s: type(s).__name__,
)
def test_a_last_step_without_privacy_or_around_a_private_one_is_refused(last):
    with pytest.raises(PrivacyError, match=type(last).__name__):
        check_pipeline(make_pipeline(Normalizer(), last))


def test_estimators_of_curves_count_as_private_with_privacy_alone():
    assert check_pipeline(PrivateFPCA(privacy=Privacy(1.0), bounds=(-1, 1)))
    with pytest.raises(PrivacyError, match="PrivateFPCA"):
        check_pipeline(PrivateFPCA(bounds=(-1, 1)))


def test_one_step_must_be_private_and_all_of_them_share_an_account():
    with pytest.raises(PrivacyError, match="got none that is"):
        check_pipeline(make_pipeline(Normalizer()))
    apart = make_pipeline(DPPCA(n_components=1, data_norm=1.0), private())
    with pytest.raises(PrivacyError, match=r"must share one budget= or one study=.*DPPCA, DPGaussianNB"):
        check_pipeline(apart)
    budget = Budget(1.0)
    first, second = DPPCA(n_components=1, data_norm=1.0, budget=budget), private(budget=budget)
    for names in (None, None), ("a", None), ("a", "b"):
        model = make_pipeline(first.set_params(dataset=names[0]), second.set_params(dataset=names[1]))
        with pytest.raises(PrivacyError, match="the same dataset="):
            check_pipeline(model)
    check_pipeline(make_pipeline(first.set_params(dataset="a"), second.set_params(dataset="a")))
    with pytest.raises(PrivacyError, match="share one budget"):
        check_pipeline(make_pipeline(first, second.set_params(budget=Budget(1.0))))
    on_study = [x.set_params(budget=None, study="ward.fdadp") for x in (first, second)]
    check_pipeline(make_pipeline(*on_study))


def test_a_tag_that_somebody_else_sets_is_believed_of_transformers_alone():
    class Odd(TransformerMixin, BaseEstimator):
        def transform(self, X):
            return X

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.requires_fit = False
            return tags

    check_pipeline(of(Odd()))
    with pytest.raises(InputError, match="pipeline must be"):
        check_pipeline(Odd)
    with pytest.raises(InputError, match="got list"):
        check_pipeline([("a", Odd())])


def test_a_private_choice_takes_no_pipelines():
    X, y = np.zeros((50, 2)), np.zeros(50)
    candidates = [make_pipeline(StandardScaler(), DPLogisticRegression(classes=[0, 1], data_norm=1.0)), private()]
    with pytest.raises(InputError, match="got Pipeline; what a step before them does to each row by itself"):
        choose_privately(candidates, X, y, Privacy(1.0, n=50))
