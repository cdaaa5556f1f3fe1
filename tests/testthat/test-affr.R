# What R gives is what Python gives on the same data: the same process, the same numbers.

python_fit <- "
import numpy as np
from fdadp import AdditiveFunctionOnFunction, simulate_affr
sim = simulate_affr(scenario=2, n=120, seed=5)
X, Y = sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]
new = simulate_affr(scenario=2, n=15, seed=6, n_points=81).X.data_matrix[..., 0].clip(X.min(), X.max())
s, t = np.linspace(1, 3, 51), np.linspace(0, 10, 51) ** 1.1
model = AdditiveFunctionOnFunction(n_basis_x=8, n_basis_s=6, n_components=3, smoothing=SMOOTHING).fit(X, Y, s=s, t=t)
at = np.linspace(1, 11, 30)
lower, upper = model.predict_interval(new, level=0.9, t=at, s=np.linspace(1, 3, 81))
expected = {
    'coefficients': model.coef_, 'sp': model.smoothing_parameters_, 'edf': model.edf_, 'criterion': model.criterion_,
    'efunctions': model.eigenfunctions_.T, 'evalues': model.eigenvalues_, 'pve': model.explained_variance_ratio_,
    'mu': model.mean_, 'sigma2': model.noise_variance_, 'residual.variance': model.residual_variance_, 'r.sq': model.r2_,
    's': model.s_, 't': model.t_, 'x.range': np.array(model.x_range_), 'fitted.values': model.predict(X)}
predicted = {'fit': model.predict(new, t=at, s=np.linspace(1, 3, 81)), 'lwr': lower, 'upr': upper,
             'se.fit': model.predict_se(new, t=at, s=np.linspace(1, 3, 81))}
everything = {'X': X, 'Y': Y, 'new': new, 's': s, 't': t, 'at': at, 'expected': expected, 'predicted': predicted,
              'surface': {'fit': model.surface([-1, 0, 0.5], [1, 1.5, 3], [0.5, 9]),
                          'se.fit': model.surface_se([-1, 0, 0.5], [1, 1.5, 3], [0.5, 9])}}
"

for (method in c("REML", "GCV.Cp")) {
  test_that(paste("a whole fit from R has Python's numbers,", method), {
    skip_without_python()
    smoothing <- if (method == "REML") "'reml'" else "'gcv'"
    python <- from_python(sub("SMOOTHING", smoothing, python_fit, fixed = TRUE), "everything")
    fit <- affr(python$Y, python$X, s = python$s, t = python$t, k = c(8, 6), npc = 3, method = method)
    for (name in names(python$expected)) expect_same(fit[[name]], python$expected[[name]], label = name)
    expect_identical(fit$n, 120L)
    expect_same(residuals(fit), python$Y - python$expected$fitted.values)
    new <- predict(fit, python$new, s = seq(1, 3, length.out = 81), t = python$at, se.fit = TRUE, interval = "prediction", level = 0.9)
    for (name in names(python$predicted)) expect_same(new[[name]], python$predicted[[name]], label = name)
    shown <- surface(fit, c(-1, 0, 0.5), c(1, 1.5, 3), c(0.5, 9), se.fit = TRUE)
    for (name in names(python$surface)) expect_same(shown[[name]], python$surface[[name]], label = name)
    expect_identical(surface(fit, c(-1, 0, 0.5), c(1, 1.5, 3), c(0.5, 9)), shown$fit)
  })
}

test_that("a Python of its own gives the same model", {
  skip_without_python()
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  sim <- simulate_affr(scenario = 1, n = 60, seed = 2, n_points = 21)
  for (name in c("X", "Y")) {
    lines <- apply(format(sim[[name]], digits = 17, trim = TRUE), 1, paste, collapse = ",")
    writeLines(c(paste(format(sim$s, digits = 17, trim = TRUE), collapse = ","), lines), file.path(folder, paste0(name, ".csv")))
  }
  model <- file.path(folder, "model.npz")
  status <- system2(
    reticulate::py_config()$python,
    c("-m", "fdadp", "fit", file.path(folder, "X.csv"), file.path(folder, "Y.csv"), "--out", model),
    stdout = FALSE, stderr = FALSE
  )
  expect_identical(status, 0L)
  stored <- reticulate::import("fdadp", convert = FALSE)$AdditiveFunctionOnFunction$load(model)
  fit <- affr(sim$Y, sim$X)
  expect_same(coef(fit), reticulate::py_to_r(stored$coef_))
  expect_same(fit$sp, reticulate::py_to_r(stored$smoothing_parameters_), 1e-9)
})

test_that("a fit is plain R data with refund's manners", {
  skip_without_python()
  fit <- weather_fit()
  expect_s3_class(fit, "affr")
  expect_identical(dim(coef(fit)), c(2L, 10L, 7L))
  expect_identical(dim(fit$efunctions), c(365L, 2L))
  expect_identical(rownames(fitted(fit)), weather()$stations$place)
  expect_equal(fitted(fit) + residuals(fit), weather()$Y)
  expect_identical(predict(fit), fitted(fit))
  expect_identical(predict(fit, weather()$X), fitted(fit))
  expect_false("externalptr" %in% unlist(rapply(unclass(fit), typeof, how = "list")))
  expect_output(print(fit), "without privacy: do not release")
  shown <- summary(fit)
  expect_output(print(shown), "lambda.s")
  expect_equal(shown$components$edf, fit$edf)
  expect_null(ledger(fit))
})

test_that("whole numbers, shares and given smoothing parameters reach Python as what they are", {
  skip_without_python()
  sim <- simulate_affr(n = 60, n_points = 21)
  expect_length(affr(sim$Y, sim$X, npc = 2)$edf, 2)
  expect_gt(length(affr(sim$Y, sim$X, npc = 0.999)$edf), 2)
  given <- affr(sim$Y, sim$X, npc = 2, sp = rbind(c(1, 2), c(3, 4)))
  expect_equal(given$sp, rbind(c(1, 2), c(3, 4)))
  expect_identical(given$method, "given")
  one <- affr(sim$Y, sim$X, npc = 1) # arrays of length one stay arrays
  expect_identical(dim(coef(one)), c(1L, 11L, 7L))
  expect_identical(dim(predict(one, sim$X[1, , drop = FALSE], t = 0.5)), c(1L, 1L))
  expect_identical(dim(surface(one, 0, 0.5, 0.5)), c(1L, 1L, 1L))
})

test_that("formulas and data frames do as matrices do", {
  skip_without_python()
  fit <- weather_fit()
  stations <- data.frame(place = weather()$stations$place)
  stations$temperature <- weather()$X
  stations$rain <- weather()$Y
  by_formula <- affr(rain ~ temperature, data = stations, s = weather()$s, t = weather()$t, npc = 2)
  expect_identical(coef(by_formula), coef(fit))
  expect_identical(predict(by_formula, stations[1:4, ]), predict(fit, weather()$X[1:4, ]))
  expect_identical(predict(by_formula, weather()$X[1:4, ]), predict(fit, weather()$X[1:4, ]))
  scaled <- affr(rain ~ I(temperature / 10), data = stations, s = weather()$s, t = weather()$t, npc = 2)
  expect_equal(predict(scaled, stations[1:4, ]), predict(fit, weather()$X[1:4, ]), tolerance = 1e-6)
  expect_error(predict(by_formula, data.frame(other = 1)), "newdata must hold temperature", class = "fdadp_input_error")
  for (bad in list(rain ~ temperature + place, ~temperature, rain ~ .)) {
    expect_error(affr(bad, data = stations), "of the form Y ~ X", class = "fdadp_input_error")
  }
  X <- as.data.frame(weather()$X)
  names(X) <- format(weather()$s, digits = 17, trim = TRUE)
  framed <- affr(weather()$Y, X, t = weather()$t, npc = 2)
  expect_equal(framed$s, weather()$s)
  expect_equal(coef(framed), coef(fit), tolerance = 1e-10)
})

test_that("gaps are treated as asked", {
  skip_without_python()
  sim <- simulate_affr(n = 60, n_points = 21)
  sim$X[3, 4] <- NA
  expect_error(affr(sim$Y, sim$X), "X must be finite", class = "fdadp_input_error")
  fit <- affr(sim$Y, sim$X, missing = "smooth")
  expect_false(anyNA(fitted(fit)))
  whole <- round(simulate_affr(n = 60, n_points = 21)$X * 10)
  storage.mode(whole) <- "integer"
  whole[2, 2] <- NA # R's missing integer is a number in other languages
  expect_error(affr(sim$Y, whole), "nan in curve 2 at position 2", class = "fdadp_input_error")
})

test_that("plots draw and return what they show", {
  skip_without_python()
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  fit <- weather_fit()
  expect_identical(dim(plot(fit)), c(40L, 40L, 3L))
  expect_identical(dim(plot(fit, t = 0.5, type = "persp", n = 12)), c(12L, 12L, 1L))
  expect_identical(dim(plot(fit, type = "components")), c(365L, 3L))
  expect_error(plot(fit, type = "film"), "type must be one of", class = "fdadp_input_error")
})
