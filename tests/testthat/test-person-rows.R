visits <- function() {
  set.seed(1)
  id <- rep(1:300, each = 3)[1:900 %% 5 != 0] # of one to three rows
  sim <- simulate_affr(scenario = 1, n = length(id), seed = 0, n_points = 15)
  x <- runif(length(id), -1, 1)
  list(X = sim$X, Y = sim$Y, x = x, y = as.numeric(runif(length(id)) < plogis(x)), id = paste0("p", id))
}

test_that("how the rows of a person count is chosen in every fit, and said", {
  skip_without_python()
  data <- visits()
  id <- data$id
  terms <- data[c("x", "y")]
  fits <- list()
  for (law in c("mean", "sum")) {
    fits[[law]] <- fdadp(y ~ x, terms, family = "binomial", groups = id, person_rows = law)
  }
  expect_match(summary(fits$mean)$notes, "each person counts once", fixed = TRUE)
  expect_match(summary(fits$sum)$notes, "each row counts once", fixed = TRUE)
  expect_gt(max(abs(predict(fits$mean, terms) - predict(fits$sum, terms))), 1e-6)
  said <- function(fit) paste(capture.output(print(ledger(fit))), collapse = "\n")
  told <- list(person_rows = "sum", max_rows = 3, epsilon = 8, delta = 1e-6, n = 300, seed = 1)
  bounds <- list(x = c(-1, 1), y = c(0, 1))
  private <- do.call(dp_fdadp, c(list(y ~ x, terms, bounds = bounds, groups = id), told))
  expect_match(said(private), "each row counts once, at most 3 rows a person", fixed = TRUE)
  curves <- do.call(dp_affr, c(list(data$Y, data$X, bounds = list(X = c(-4, 4), Y = c(-8, 8)), groups = id, allow_useless = TRUE), told))
  expect_match(said(curves), "each row counts once, at most 3 rows a person", fixed = TRUE)
  expect_error(dp_affr(data$Y, data$X, epsilon = 8, delta = 1e-6, n = 300, bounds = list(X = c(-4, 4), Y = c(-8, 8)), groups = id, person_rows = "sum"),
    "max_rows must be given with person_rows='sum'",
    fixed = TRUE
  )
})

test_that("forecasts are of either way to count rows", {
  skip_without_python()
  few_cohorts()
  plan <- function(...) plan_dp(1000, 1, 1e-6, formula = y ~ x, bounds = list(x = c(-3, 3), y = c(-8, 8)), ...)
  expect_match(plan(person_rows = "sum", max_rows = 6)$text, "each row counts once; rows of a person at most +6")
  expect_error(plan(person_rows = "sum"), "max_rows must be given with person_rows='sum'", fixed = TRUE)
  expect_error(plan_dp(1000, max_rows = 6), "must be left out without a formula")
})

test_that("private mixed models are fitted, with effects within persons", {
  skip_without_python()
  data <- visits()
  data$weekend <- rep(0:1, length.out = length(data$id))
  data <- data[c("Y", "x", "weekend", "id")]
  fit <- function(...) {
    dp_fdadp(Y ~ x + weekend + re(id, covariance = "free"), data,
      bounds = list(Y = c(-8, 8), x = c(-1, 1), weekend = c(0, 1)), epsilon = 8, delta = 1e-6, n = 300, seed = 1, ...
    )
  }
  found <- fit(max_rows = 3, within = "weekend")
  expect_true(any(grepl("effects of weekend come from what differs within persons", found$notes, fixed = TRUE)))
  expect_true(any(grepl("the effects of persons are never released", found$notes, fixed = TRUE)))
  expect_identical(dim(predict(found, data.frame(x = 0, weekend = 0:1))), c(2L, 15L))
  expect_true(any(grepl("weighed as exchangeable", fit(max_rows = 3, person_rows = "exchangeable")$notes, fixed = TRUE)))
  expect_error(fit(within = "weekend"), "max_rows must be given", fixed = TRUE)
  expect_error(fit(max_rows = 3, within = "age"), "within must name columns of terms, got 'age'", fixed = TRUE)
  expect_error(dp_fdadp(x ~ weekend, data, bounds = list(x = c(-1, 1), weekend = c(0, 1)), epsilon = 8, n = 300, within = "weekend"),
    "within must be left out where the response is a number",
    fixed = TRUE
  )
})
