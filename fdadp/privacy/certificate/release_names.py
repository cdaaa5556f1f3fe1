"""What the names of releases mean, in one line each: for the certificate, and for the page that explains one."""

from __future__ import annotations

import re

WHAT = {
    "People and rows": {
        "number of persons|number of persons, again|persons": (
            "how many persons take part, where their number is private"
        ),
        "number of rows|number of rows, again|number of usable rows": "how many rows take part",
        "number of persons with an observed curve": "how many persons have a curve that is not wholly missing",
        "rows a person|curves a person": "how many persons have 1, 2, 3 or more rows",
        "observed values by point": "how many curves were observed at each point",
    },
    "Where values lie and how much they vary": {
        "root mean square of *": "the typical distance of values from the middle of the declared range",
        "location of *|location of *, again": "the level around which values lie",
        "scale of *|scale of *, again": "the typical distance of values from that level",
        "means and variances of *": "means and variances of these columns of numbers",
        "counts of * in cells|counts of * in smaller cells": "how many persons have a number in each part of the range",
        "counts in cells *|distances from places": (
            "how many values lie in each part of a range, and how far from its middle"
        ),
        "share of values beyond the bounds|shares outside the bounds": (
            "which share of values is outside the declared ranges"
        ),
        "levels of curves": "how many persons have a mean level in each of 16 parts of the range",
        "size of *|spread of *": "the typical size of curves, of what a person's curves differ by, or of residuals",
        "shares of large curves|shares of persons *": "which share of persons lies beyond a few multiples of that size",
        "energy of * by frequency|energy of * by roughness": (
            "how rough curves are: which share of them is slow, which is fast"
        ),
        "roughness of *": "the typical difference between neighbouring values of a curve",
    },
    "Means, counts and covariances": {
        "rough mean|mean": "the mean curve, first roughly, then more precisely",
        "mean of Y": "the mean response",
        "base rate": "the share of responses that are 1",
        "histogram of counts": "how many responses are 0, 1, 2, and so on",
        "covariance|covariance of means of persons|covariance within persons": (
            "how the values of a curve vary together, between persons or within a person"
        ),
        "energy outside *": "how much of the curves' variation the chosen functions leave out",
        "counts|counts of *": "how many persons have each label",
        "cumulative counts|cumulative counts of *": "how many numbers lie below each of several limits, for quantiles",
        "moments|moments of *|scale of moments": "sums and sums of squares, for means and standard deviations",
        "events and censored times": "how many persons have an event, or are last seen, in each interval of time",
    },
    "The fit of a model": {
        "directions of features": "which combinations of covariates vary most",
        "scale of gradient|scale of gradient *": "the typical size of one person's part in the next step",
        "gradient|gradient *": "in which direction a step of the fit improves the model",
        "second moment|second moment of *": (
            "sums of products of covariates and responses, from which the model follows"
        ),
        "products of *": "sums of products of covariates, between persons or within a person",
        "equations of means, *|equations within persons, *": "the equations of a mixed model, summed over persons",
        "curvature at the fit": "how quickly the fit gets worse away from the estimate, for standard errors",
        "coefficients|logistic regression": "the coefficients of a model, with noise",
    },
    "What the model leaves over": {
        "scale of residuals|scale of residuals, again|size of residuals|tail of residuals *|tail of targets": (
            "the typical and the largest differences between responses and the model"
        ),
        "mean of residuals|sum of residuals": "the mean of those differences, which corrects the level",
        "covariance of residuals": "how those differences vary together along a curve, for standard errors",
        "residuals in blocks of time|residuals by *|residuals against *": (
            "where along time, or for which rows, they are larger"
        ),
        "calibration of intervals": (
            "how many differences are 1, 2, 3 or more standard deviations, which sets the intervals' width"
        ),
    },
    "Learners": {
        "principal directions, *|power method, *|variances along the directions": (
            "principal components and their variances"
        ),
        "counts and sums of the clusters, *|histogram on a grid": (
            "how many rows are in each cluster or cell, and their sums"
        ),
        "class counts *|counts and sums of the target in leaves|counts, sums and sums of squares *": (
            "how many rows of each class are in each leaf or bin, or sums of their values"
        ),
        "rows in the bins*|rows of the classes and in the bins": "how many rows are in each bin of each column",
        "pass *: residuals by *|round *: test|round *: step": "which split improves the model, and by how much",
        "weight of the evidence, *": "how much to trust the product of the columns' probabilities",
        "sum of rows and their number": "the sum of rows and how many there are",
    },
}
"""By subject: names of releases, where ``*`` stands for a column or a number, and what they are."""

_KNOWN = sorted(
    (
        (len(name), re.compile(re.escape(name).replace(r"\*", ".+")), text)
        for about in WHAT.values()
        for names, text in about.items()
        for name in names.split("|")
    ),
    key=lambda known: -known[0],  # "scale of residuals" before "scale of *"
)


def meaning(name: str) -> str:
    """What a release is, by its name; empty where there is no line for it, as for a user's own mechanism."""
    return next((text for _, names, text in _KNOWN if names.fullmatch(name.strip())), "")
