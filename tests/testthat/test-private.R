test_that("a private fit is Python's, number by number, where the noise is seeded", {
  skip_without_python()
  python <- from_python("
from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
sim = simulate_affr(scenario=1, n=1000, seed=3)
X, Y = sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]
people = [f'p{i // 2}' for i in range(1000)]
privacy, bounds = Privacy(epsilon=2.0, delta=1e-6, random_state=7), {'X': (-4.5, 4.5), 'Y': (-8, 8)}
model = AdditiveFunctionOnFunction(privacy=privacy, bounds=bounds).fit(X, Y, groups=people)
lower, upper = model.predict_interval(X[:5])
everything = dict(X=X, Y=Y, people=people, coef=model.coef_, edf=model.edf_, mean=model.mean_, n=model.n_curves_,
                  se=model.predict_se(X[:5]), lower=lower, upper=upper, ledger=model.ledger_.to_json())
", "everything")
  fit <- dp_affr(python$Y, python$X, epsilon = 2, delta = 1e-6, bounds = bounds, seed = 7, groups = python$people)
  expect_same(coef(fit), python$coef)
  expect_same(fit$edf, python$edf)
  expect_same(fit$mu, python$mean)
  expect_identical(fit$n, as.integer(python$n))
  new <- suppressWarnings(predict(fit, python$X[1:5, ], se.fit = TRUE, interval = "prediction"))
  expect_same(new$se.fit, python$se)
  expect_same(new$lwr, python$lower)
  expect_same(new$upr, python$upper)
  expect_identical(ledger(fit)$json, python$ledger)
  expect_false(ledger(fit)$for.release)
  expect_match(ledger(fit)$headline, "not for release")
})

test_that("noise is secure by default and R's seed has no part in it", {
  skip_without_python()
  first <- private_fit()
  fit <- function() with(cache$cohort, dp_affr(Y, X, epsilon = 1, delta = 1e-6, n = 1000, bounds = bounds))
  set.seed(1)
  a <- fit()
  set.seed(1)
  b <- fit()
  expect_gt(max(abs(coef(a) - coef(b))), 1e-6)
  expect_true(ledger(first)$for.release)
  expect_true(all(ledger(first)$releases$secure))
  expect_match(ledger(first)$details[["noise"]], "OpenDP")
})

test_that("a private fit keeps nothing of the training curves", {
  skip_without_python()
  private_fit()
  X <- cache$cohort$X
  Y <- cache$cohort$Y
  X[] <- X + 1.23456789e-3
  data <- list(secret = Y, predictor = X)
  arguments <- list(epsilon = 1, delta = 1e-6, n = 1000, bounds = bounds, groups = paste("person", 1:1000))
  fits <- list(
    do.call(dp_affr, c(list(Y, X), arguments)), # the call itself holds the data
    do.call(dp_affr, c(list(secret ~ predictor, data = data), arguments))
  )
  for (fit in fits) {
    held <- unlist(rapply(unclass(fit), as.double, classes = c("numeric", "integer"), how = "unlist"))
    expect_false(any(held %in% c(X, Y)))
    expect_false(any(vapply(fit, NROW, 1L) == 1000L))
    expect_false(any(rapply(unclass(fit), is.environment, how = "unlist")))
    expect_false(any(rapply(unclass(fit), is.language, how = "unlist")))
    expect_false(any(grepl("person 7", unlist(rapply(unclass(fit), as.character, classes = "character", how = "unlist")), fixed = TRUE)))
    path <- tempfile(fileext = ".npz")
    writeBin(fit$file, path)
    stored <- reticulate::import("numpy", convert = FALSE)$load(path)
    for (name in setdiff(reticulate::py_to_r(stored$files), "header")) {
      expect_false(any(reticulate::py_to_r(stored[name]) %in% c(X, Y)))
    }
    expect_error(fitted(fit), "not kept by a private fit", class = "fdadp_privacy_error")
    expect_error(residuals(fit), "not kept by a private fit", class = "fdadp_privacy_error")
    expect_error(predict(fit), "not kept by a private fit", class = "fdadp_privacy_error")
  }
  expect_identical(dim(suppressWarnings(predict(fits[[2]], data.frame(predictor = I(X[1:3, ]))))), c(3L, 51L))
})

test_that("what is refused is refused with Python's text, before any data are read", {
  skip_without_python()
  fit <- function(...) dp_affr(matrix(1, 20, 5), matrix(1, 20, 5), ...)
  refused <- function(pattern, ...) expect_error(fit(...), pattern, class = "fdadp_privacy_error")
  refused("bounds must give a public range for X", epsilon = 1)
  refused("bounds must give a public range for Y", epsilon = 1, bounds = list(X = c(0, 1)))
  refused("bounds must be list", epsilon = 1, bounds = c(0, 1))
  refused("bounds of X must be finite with low < high", epsilon = 1, bounds = list(X = c(1, 0), Y = c(0, 1)))
  refused("epsilon must be a number above 0", bounds = bounds)
  refused("epsilon must be a number above 0, got -1", epsilon = -1, bounds = bounds)
  refused("delta must lie between 0 and 1", epsilon = 1, delta = 2, bounds = bounds)
  refused("n \\* epsilon of at least 50", epsilon = 1, delta = 1e-6, n = 20, bounds = bounds)
  refused("adjacency must be one of", epsilon = 1, adjacency = "none", bounds = bounds)
  refused("mechanism must be one of", epsilon = 1, mechanism = "none", bounds = bounds)
  expect_error(fit(epsilon = 1, budget = 3), "unused argument: budget", class = "fdadp_input_error")
})

test_that("one person's text or gap changes nothing in how another's numbers are read", {
  values <- matrix(as.double(1:12) / 3, 4)
  frame <- as.data.frame(values)
  text <- frame
  text[[2]] <- format(text[[2]], digits = 17, trim = TRUE)
  text[[2]][3] <- "none"
  read <- as_curves(text, NULL, "X", private = TRUE)$values
  expect_identical(read[-3, ], values[-3, ])
  expect_identical(read[3, ], c(values[3, 1], NA, values[3, 3]))
  expect_error(as_curves(text, NULL, "X"), "must be numeric", class = "fdadp_input_error")
})

test_that("a gap says nothing, and is what any other number that is none is", {
  skip_without_python()
  sim <- simulate_affr(n = 600, n_points = 21)
  fit <- function(gap) {
    sim$X[3, 4] <- sim$Y[5, ] <- gap
    dp_affr(sim$Y, sim$X, epsilon = 1, delta = 1e-6, n = 600, bounds = bounds, seed = 1)
  }
  expect_no_condition(missing <- fit(NA)) # R's NA is a signalling NaN, of which NumPy would warn
  expect_identical(coef(missing), coef(fit(NaN)))
  expect_identical(coef(missing), coef(fit(Inf)))
})

test_that("persons are passed on as they are, the missing as missing", {
  expect_identical(c(as_groups(factor(c("b", NA, "a")))$ids), c("b", NA, "a"))
  expect_identical(c(as_groups(c(7L, NA))$ids), c(7, NA))
  expect_identical(c(as_groups(c("x", NA))$missing), c(FALSE, TRUE))
  skip_without_python()
  sim <- simulate_affr(n = 600, n_points = 21)
  # A row of nobody is never used: with seeded noise its values make no difference.
  other <- sim$X
  other[600, ] <- 4
  people <- c(paste0("p", 1:599), NA)
  fit <- function(X) dp_affr(sim$Y, X, epsilon = 1, delta = 1e-6, bounds = bounds, groups = people, seed = 1)
  expect_identical(coef(fit(sim$X)), coef(fit(other)))
  people[600] <- "p600"
  expect_false(identical(coef(fit(sim$X)), coef(fit(other))))
})

test_that("the other mechanism is private too", {
  skip_without_python()
  private_fit()
  for (mechanism in "moments") {
    fit <- with(cache$cohort, dp_affr(Y, X, epsilon = 1, bounds = bounds, mechanism = mechanism)) # pure, n private
    expect_true(fit$private)
    expect_identical(fit$adjacency, "add-remove")
    expect_null(fit$delta)
    expect_match(ledger(fit)$headline, paste0(mechanism, ": differentially private end to end, epsilon = 1"))
    expect_true(all(is.finite(suppressWarnings(predict(fit, cache$cohort$X[1:3, ])))))
    expect_output(print(summary(fit)), mechanism)
  }
})

test_that("the published scheme says what it is", {
  skip_without_python()
  sim <- simulate_affr(n = 100, n_points = 21)
  expect_warning(
    fit <- dp_affr(sim$Y, sim$X, epsilon = 0.2, mechanism = "published"),
    "not differentially private end to end",
    class = "fdadp_not_private_warning"
  )
  expect_false(fit$private)
  expect_output(print(fit), "NOT differentially private end to end")
  expect_gt(length(ledger(fit)$unnoised), 0)
  expect_error(fitted(fit), class = "fdadp_privacy_error")
})

test_that("a private fit prints its guarantee and its ledger", {
  skip_without_python()
  fit <- private_fit()
  expect_s3_class(fit, c("dp_affr", "affr"), exact = TRUE)
  expect_output(print(fit), "differentially private end to end, epsilon = 1, delta = 1e-06")
  expect_output(print(summary(fit)), "component 1")
  expect_output(print(ledger(fit)), "Released, with noise")
  expect_s3_class(ledger(fit)$releases, "data.frame")
  expect_lte(sum(ledger(fit)$releases$share), 1 + 1e-9)
  expect_match(ledger(fit)$curve, "mu = 0.2368 (Gaussian DP), which is (epsilon, delta) = (1, 1e-06)", fixed = TRUE)
  expect_lte(sum(ledger(fit)$releases$mu^2), ledger(fit)$mu^2 * (1 + 1e-12))
  newcomers <- simulate_affr(scenario = 1, n = 200, seed = 1)
  new <- suppressWarnings(predict(fit, newcomers$X, interval = "prediction"))
  constant <- matrix(colMeans(newcomers$mean_function), 200, 51, byrow = TRUE)
  expect_lt(rmspe(newcomers$Y, new$fit), rmspe(newcomers$Y, constant))
  expect_gt(coverage(newcomers$Y, new$lwr, new$upr), 0.9)
})

test_that("the unit of privacy is a setting, and is checked before the curves are read", {
  skip_without_python()
  sim <- simulate_affr(scenario = 1, n = 100, seed = 0)
  fit <- function(...) dp_affr(sim$Y, sim$X, epsilon = 4, delta = 1e-6, n = 100, bounds = bounds, seed = 1, ...)
  expect_error(fit(unit = "person"), "groups must be the person id of every row", class = "fdadp_privacy_error")
  expect_error(fit(unit = "row", groups = 1:100), "groups must be left out", class = "fdadp_privacy_error")
  expect_error(fit(unit = "patient"), "unit must be one of row, person", class = "fdadp_privacy_error")
})
