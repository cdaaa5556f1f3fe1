# Objects as package fda makes them, by hand: coefficients (basis functions, curves) and a basis.
make_fd <- function(coefs, type, rangeval, nbasis, params, dropind = NULL) {
  basis <- structure(list(type = type, rangeval = rangeval, nbasis = nbasis, params = params, dropind = dropind), class = "basisfd")
  structure(list(coefs = coefs, basis = basis, fdnames = list("time", "reps", "values")), class = "fd")
}

set.seed(1)
breaks <- c(1.2, 1.9, 2.4)
splines <- make_fd(matrix(rnorm(7 * 4), 7), "bspline", c(1, 3), 7, breaks)
waves <- make_fd(matrix(rnorm(5 * 4), 5), "fourier", c(0, 2), 5, 2)

test_that("B-splines of fda are what they should be", {
  at <- seq(1, 3, length.out = 33)
  knots <- c(1, 1, 1, 1, breaks, 3, 3, 3, 3)
  greville <- vapply(1:7, function(j) mean(knots[j + 1:3]), 1)
  line <- make_fd(cbind(greville, 1), "bspline", c(1, 3), 7, breaks)
  read <- as_curves(line, at, "X")
  expect_equal(read$values, rbind(at, 1), tolerance = 1e-14, ignore_attr = TRUE)
  expect_identical(c(read$grid), at)
  expect_length(as_curves(splines, NULL, "X")$grid, 101)
})

test_that("Fourier functions of fda are orthonormal over a period, in fda's order", {
  at <- seq(0, 2, length.out = 401)[-401]
  each <- as_curves(make_fd(diag(5), "fourier", c(0, 2), 5, 2), at, "X")$values
  expect_equal(each %*% t(each) * 2 / 400, diag(5), tolerance = 1e-12)
  expect_equal(each[2, ], sin(pi * at), tolerance = 1e-12)
  expect_equal(each[5, ], cos(2 * pi * at), tolerance = 1e-12)
})

test_that("other bases, dropped functions and bad grids", {
  cubic <- make_fd(matrix(c(1, 0, 2, -1)), "monom", c(0, 2), 4, 0:3)
  expect_equal(drop(as_curves(cubic, c(0, 1, 2), "X")$values), c(1, 2, 1))
  expect_equal(drop(as_curves(make_fd(matrix(3), "const", c(0, 1), 1, NULL), c(0, 1), "X")$values), c(3, 3))
  dropped <- make_fd(matrix(1:4), "fourier", c(0, 2), 5, 2, dropind = 1)
  full <- make_fd(matrix(c(0, 1:4)), "fourier", c(0, 2), 5, 2)
  expect_identical(as_curves(dropped, NULL, "X"), as_curves(full, NULL, "X"))
  expect_error(as_curves(splines, c(0, 2), "X"), "grid of X must lie in the curves' domain", class = "fdadp_input_error")
  rates <- make_fd(matrix(c(2, 3)), "expon", c(0, 1), 2, c(0, 1))
  expect_equal(drop(as_curves(rates, c(0, 1), "X")$values), c(5, 2 + 3 * exp(1)))
  broken <- make_fd(matrix(c(1, 3, 0)), "polygonal", c(0, 4), 3, c(0, 1, 4))
  expect_equal(drop(as_curves(broken, c(0, 0.5, 1, 2, 4), "X")$values), c(1, 2, 3, 2, 0))
  expect_error(as_curves(make_fd(diag(2), "FEM", c(0, 1), 2, 1), NULL, "X"), "got FEM", class = "fdadp_input_error")
  short <- make_fd(diag(2), "fourier", c(0, 2), 5, 2)
  expect_error(as_curves(short, NULL, "X"), "one coefficient a basis function, got 2 for 5", class = "fdadp_input_error")
})

test_that("each curve is evaluated by itself", {
  alone <- splines
  alone$coefs <- splines$coefs[, 3, drop = FALSE]
  beside <- splines
  beside$coefs[, 1] <- NA
  values <- as_curves(splines, NULL, "X")$values
  expect_identical(as_curves(alone, NULL, "X")$values[1, ], values[3, ])
  expect_identical(as_curves(beside, NULL, "X")$values[2:4, ], values[2:4, ])
})

rows_of <- function(fd) {
  rows <- apply(t(fd$coefs), 1, function(row) paste0("[", paste(format(row, digits = 17), collapse = ","), "]"))
  paste0("[", paste(rows, collapse = ","), "]")
}

test_that("fda and scikit-fda mean the same curves", {
  skip_without_python()
  python <- from_python(sprintf("
import numpy as np
from skfda import FDataBasis
from skfda.representation.basis import BSplineBasis, FourierBasis
at = np.linspace(1, 3, 101)
splines = FDataBasis(BSplineBasis(domain_range=(1, 3), knots=[1, 1.2, 1.9, 2.4, 3], order=4), %s)(at)[..., 0]
waves = FDataBasis(FourierBasis(domain_range=(0, 2), n_basis=5, period=2), %s)(at - 1)[..., 0]
everything = dict(splines=splines, waves=waves)
", rows_of(splines), rows_of(waves)), "everything")
  expect_same(as_curves(splines, NULL, "X")$values, python$splines)
  expect_same(as_curves(waves, NULL, "X")$values, python$waves)
})

test_that("fits, private ones too, take fd objects", {
  skip_without_python()
  set.seed(2)
  X <- make_fd(matrix(rnorm(7 * 60), 7), "bspline", c(1, 3), 7, breaks)
  Y <- make_fd(rbind(colMeans(X$coefs), matrix(rnorm(4 * 60) / 5, 4)), "fourier", c(0, 2), 5, 2)
  at <- seq(0, 2, length.out = 31)
  fit <- affr(Y, X, t = at, npc = 2)
  plain <- affr(as_curves(Y, at, "Y")$values, as_curves(X, NULL, "X")$values, s = seq(1, 3, length.out = 101), t = at, npc = 2)
  expect_identical(coef(fit), coef(plain))
  expect_identical(predict(fit, X), fitted(fit))
  private <- dp_affr(Y, X, epsilon = 10, delta = 1e-4, n = 60, bounds = bounds, seed = 1)
  expect_identical(dim(predict(private, X)), c(60L, 101L))
})
