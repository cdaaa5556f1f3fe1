# Names of rows and columns, settings that are NA, and what R's generics give.

named <- function(values, rows, columns = NULL) {
  dimnames(values) <- list(rows, columns)
  values
}

test_that("rows that do not belong together are refused, and what has no names goes by position", {
  skip_without_python()
  w <- weather()
  n <- nrow(w$X)
  places <- paste("place", seq_len(n))
  X <- named(w$X, places)
  Y <- named(w$Y, places)
  fit <- affr(Y, X, npc = 2)
  expect_same(fit$coefficients, affr(unname(w$Y), unname(w$X), npc = 2)$coefficients)
  expect_message(turned <- affr(Y[n:1, ], X, npc = 2), "joined 35 of 35 by row label")
  expect_same(fitted(turned)[n:1, ], fitted(fit), tolerance = 1e-6)
  expect_identical(rownames(fitted(turned)), places[n:1])
  expect_error(rmspe(Y[n:1, ], predict(fit, X)), "Y and Yhat must have the same row labels", class = "fdadp_input_error")
  expect_error(coverage(Y, Y[n:1, ] - 1, Y + 1), "same row labels", class = "fdadp_input_error")
  frames <- list(X = as.data.frame(unname(w$X)), Y = as.data.frame(unname(w$Y)))
  expect_error(affr(frames$Y[n:1, ], frames$X), "got 1 and 35 in row 1", class = "fdadp_input_error")
  expect_same(affr(frames$Y[n:1, ], frames$X[n:1, ], npc = 2)$edf, fit$edf, tolerance = 1e-6)
  expect_same(affr(Y, frames$X, npc = 2)$edf, fit$edf) # counted rows say nothing against names
})

test_that("a private fit joins rows by their names, and refuses other ones only where they are public", {
  skip_without_python()
  private_fit()
  cohort <- cache$cohort
  people <- paste0("p", seq_len(1000))
  fit <- function(...) {
    dp_affr(named(cohort$Y, rev(people)), named(cohort$X, people), epsilon = 1, delta = 1e-6, n = 1000, bounds = bounds, seed = 1, ...)
  }
  joined <- fit()
  expect_match(paste(unlist(joined$ledger$details), collapse = " "), "joined by row label")
  turned <- dp_affr(cohort$Y[1000:1, ], cohort$X[1000:1, ], epsilon = 1, delta = 1e-6, n = 1000, bounds = bounds, seed = 1)
  expect_match(paste(unlist(turned$ledger$details), collapse = " "), "position; labels were not looked at")
  same <- dp_affr(named(cohort$Y, people)[1000:1, ], named(cohort$X, people), epsilon = 1, delta = 1e-6, n = 1000, bounds = bounds, seed = 1)
  expect_same(same$coefficients, turned$coefficients)
  others <- c("elsewhere", people[-1])
  public <- function(names) {
    dp_affr(named(cohort$Y, names), named(cohort$X, people), epsilon = 1, delta = 1e-6, n = 1000, bounds = bounds, seed = 1, labels = "public")
  }
  expect_error(public(others), "X and Y must have rows of the same ids, each once", class = "fdadp_input_error")
  expect_same(public(people)$coefficients, turned$coefficients)
  expect_error(fit(unit = "row"), "by must be 'position' where unit is 'row'", class = "fdadp_privacy_error")
})

test_that("column names of a matrix are the grid, decreasing ones and dates too", {
  skip_without_python()
  w <- weather()
  days <- seq_len(ncol(w$Y))
  fit <- affr(named(w$Y, NULL, days), named(w$X, NULL, rev(4000 + days)), npc = 2)
  expect_equal(fit$t, as.double(days))
  expect_equal(fit$s, 4000 + days)
  turned <- affr(w$Y, w$X[, rev(days)], s = 4000 + days, t = days, npc = 2)
  expect_same(fit$coefficients, turned$coefficients)
  down <- affr(named(w$Y[, rev(days)], NULL, rev(days)), w$X, npc = 2)
  expect_identical(colnames(fitted(down)), as.character(rev(days)))
  predicted <- predict(down, w$X[1:3, ], interval = "prediction")
  expect_identical(colnames(predicted$lwr), as.character(rev(days)))
  straight <- affr(named(w$Y, NULL, days), w$X, npc = 2)
  expect_same(predicted$fit[, rev(days)], predict(straight, w$X[1:3, ]))
  expect_same(residuals(down), w$Y[, rev(days)] - fitted(down))
  dated <- affr(w$Y, named(w$X, NULL, as.character(as.Date("2020-01-01") + 2 * days)), npc = 2)
  expect_equal(dated$s, 2 * (days - 1))
  for (labels in list(c(days[-1], "age"), c(days[-1], 2), paste0("x", c(days[-1], 2)))) {
    expect_error(affr(w$Y, named(w$X, NULL, labels)), "columns of X must", class = "fdadp_input_error")
  }
})

test_that("settings that are NA are refused by name", {
  skip_without_python()
  w <- weather()
  cases <- list(k = c(7, NA), npc = NA, sp = c(1, NA), degree = NA, m = NA_real_, quadrature = NA_character_)
  for (name in names(cases)) {
    expect_error(do.call(affr, c(list(w$Y, w$X), cases[name])), paste(name, "must not be NA"), class = "fdadp_input_error")
  }
  private <- list(epsilon = NA, delta = NA_real_, n = NA, seed = NA, allow_useless = NA, adjacency = NA, unit = NA, labels = NA, mechanism = NA)
  good <- list(epsilon = 1, delta = 1e-6, n = 1000, bounds = bounds)
  for (name in names(private)) {
    given <- good
    given[[name]] <- private[[name]]
    expect_error(do.call(dp_affr, c(list(w$Y, w$X), given)), paste(name, "must not be NA"), class = "fdadp_input_error")
  }
  expect_error(plan_dp(n = NA), "n must not be NA", class = "fdadp_input_error")
  expect_error(fpca(w$X, npc = NA), "npc must not be NA", class = "fdadp_input_error")
  expect_error(fpca(w$X, shrink = NA), "shrink must not be NA", class = "fdadp_input_error")
  expect_error(predict(weather_fit(), w$X, level = NA, interval = "prediction"), "level must not be NA", class = "fdadp_input_error")
  expect_error(surface(weather_fit(), NA_real_, 0.5, 0.5), "x must not be NA", class = "fdadp_input_error")
})

test_that("messages count curves and positions from 1", {
  skip_without_python()
  w <- weather()
  w$X[3, 5] <- NA
  expect_error(affr(w$Y, w$X), "got nan in curve 3 at position 5", class = "fdadp_input_error")
  expect_error(affr(w$Y, weather()$X, s = c(0, 0, seq_len(363))), "followed by 0 at position 1", class = "fdadp_input_error")
})

test_that("deviance, sigma and nobs are what they are called", {
  skip_without_python()
  fit <- weather_fit()
  expect_equal(deviance(fit), sum(residuals(fit)^2))
  expect_equal(sigma(fit), sqrt(mean(fit$residual.variance)))
  expect_equal(nobs(fit), 35)
  expect_error(deviance(private_fit()), "not kept by a private fit", class = "fdadp_privacy_error")
  expect_gt(sigma(private_fit()), 0)
})
