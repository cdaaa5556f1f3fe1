people <- function(n, seed = 0) {
  sim <- simulate_affr(scenario = 1, n = n, seed = seed, n_points = 21)
  set.seed(seed)
  age <- runif(n, 20, 80)
  sex <- sample(c("f", "m"), n, TRUE)
  list(X = sim$X, Y = sim$Y + outer((age - 50) / 20, seq(0, 1, length.out = 21)), age = age, sex = sex, y = rowMeans(sim$X) + age / 20)
}
bounds <- list(X = c(-4, 4), Y = c(-8, 8), age = c(18, 90), sex = c("f", "m"), y = c(-6, 10))

test_that("a private regression on several terms is fitted, looked at and kept", {
  skip_without_python()
  data <- people(1500)
  fit <- dp_fdadp(Y ~ sff(X) + age + sex, data, epsilon = 2, delta = 1e-6, n = 1500, bounds = bounds, seed = 1)
  expect_equal(fit$term.names, c("(Intercept)", "s(t)", "sff(X)", "age", "sex"))
  expect_equal(sum(fit$importances), 1, tolerance = 1e-6)
  expect_match(ledger(fit)$headline, "epsilon = 2")
  expect_false(any(vapply(fit, function(part) is.numeric(part) && length(part) >= 1500, TRUE)))
  new <- people(40, seed = 3)
  found <- predict(fit, new, se.fit = TRUE, interval = "prediction")
  expect_equal(dim(found$fit), c(40, 21))
  covered <- mean(found$lwr <= new$Y & new$Y <= found$upr)
  expect_gt(covered, 0.85)
  frame <- data.frame(age = new$age, sex = factor(new$sex))
  frame$X <- new$X
  expect_equal(predict(fit, frame), found$fit)
  effect <- coef(fit, "age")
  expect_gt(mean(effect$lower <= effect$t / 20 & effect$t / 20 <= effect$upper), 0.5)
  expect_output(print(fit), "share of each term")
  expect_output(print(summary(fit)), "NOT FOR RELEASE")
  drawn <- simulate(fit, nsim = 50, seed = 1)
  expect_equal(dim(drawn$Y), c(50, 21))
  expect_setequal(unique(drawn$sex), c("f", "m"))
  path <- tempfile()
  saveRDS(fit, path)
  expect_equal(predict(readRDS(path), new), found$fit)
})

test_that("a private regression of a number", {
  skip_without_python()
  data <- people(1500)
  fit <- dp_fdadp(y ~ lf(X) + s(age), data, epsilon = 2, delta = 1e-6, n = 1500, bounds = bounds, seed = 1)
  new <- people(100, seed = 4)
  expect_gt(cor(predict(fit, new), new$y), 0.9)
  expect_equal(names(coef(fit, "lf(X)"))[1], "s")
})

test_that("entries of another type change nothing but themselves", {
  skip_without_python()
  data <- people(400)
  odd <- blank <- data
  odd$age <- as.character(data$age)
  odd$age[3] <- "unknown"
  blank$age <- as.character(data$age)
  blank$age[3] <- NA
  fits <- lapply(list(odd, blank), function(d) dp_fdadp(Y ~ sff(X) + age, d, epsilon = 2, delta = 1e-6, n = 400, bounds = bounds, seed = 1))
  new <- people(5, seed = 9)
  expect_identical(predict(fits[[1]], new), predict(fits[[2]], new))
})

test_that("what is wrong is said before anything is read", {
  skip_without_python()
  data <- people(300)
  private <- function(formula, ...) dp_fdadp(formula, data, epsilon = 1, delta = 1e-6, n = 300, seed = 1, ...)
  expect_error(private(Y ~ sff(X) + age, bounds = bounds[c("X", "Y")]), "public range for age", class = "fdadp_privacy_error")
  expect_error(private(Y ~ sff(X), bounds = NULL), "bounds must be a list")
  expect_error(private(Y ~ sff(Q), bounds = bounds), "column Q")
  expect_error(private(~X, bounds = bounds), "of the form")
  expect_error(private(Y ~ sff(X) + re(sex), bounds = bounds), "re")
  expect_error(dp_fdadp(Y ~ sff(X), data, bounds = bounds), "epsilon must be")
  fit <- private(Y ~ sff(X), bounds = bounds)
  expect_error(fitted(fit), "not kept", class = "fdadp_privacy_error")
  expect_error(predict(fit), "newdata must be given")
})

test_that("formulas are said as Python reads them", {
  expect_equal(as_python(quote(ff(X, k = c(5, 5), rule = "simpson") + s(age, k = 8) + factor(sex) * z - 1)), "ff(X, k=(5, 5), rule=\"simpson\") + s(age, k=8) + C(sex) * z - 1")
})

test_that("columns and bounds as R has them", {
  skip_without_python()
  data <- people(400)
  fit <- function(d, formula = Y ~ sff(X) + age + sex, b = bounds) {
    dp_fdadp(formula, d, epsilon = 2, delta = 1e-6, n = 400, bounds = b, seed = 1)
  }
  new <- people(5, seed = 9)
  plain <- predict(fit(data), new)
  data$age[7] <- NA
  gone <- predict(fit(data), new)
  others <- list(
    factor(data$sex, c("z", "m", "f")), factor(data$sex, ordered = TRUE), I(data$sex)
  )
  for (sex in others) expect_identical(predict(fit(modifyList(data, list(sex = sex))), new), gone)
  as_text <- modifyList(data, list(age = factor(format(data$age, digits = 17))))
  as_text$age[7] <- NA
  expect_equal(predict(fit(as_text), new), gone)
  expect_identical(predict(fit(modifyList(data, list(age = matrix(data$age, ncol = 1)))), new), gone)
  expect_false(identical(plain, gone))
  squares <- fit(data, y ~ I(age^2) + sex)
  expect_gt(cor(predict(squares, new), new$age), 0.5)
  expect_error(fit(data, b = modifyList(bounds, list(age = as.Date(c("2020-01-01", "2021-01-01"))))), "bounds must be numbers or levels, got Date")
  expect_error(fit(data, y ~ C(age)), "looks like a range")
})

test_that("columns of a list with names of rows are joined by them, in the kernel", {
  skip_without_python()
  set.seed(2)
  n <- 400
  ids <- paste0("p", seq_len(n))
  z <- stats::setNames(stats::runif(n), ids)
  Y <- outer(z, seq(0, 1, length.out = 6)) + matrix(stats::rnorm(n * 6, sd = 0.2), n)
  rownames(Y) <- ids
  fit <- function(data) dp_fdadp(Y ~ z, data, epsilon = 4, delta = 1e-6, n = n, bounds = list(z = c(0, 1), Y = c(-2, 2)), seed = 1)
  first <- fit(list(Y = Y, z = z))
  second <- fit(list(Y = Y[n:1, ], z = sample(z)))
  expect_match(paste(unlist(first$ledger$details), collapse = " "), "joined by row label")
  expect_same(first$sigma2, second$sigma2)
  expect_same(first$r.sq, second$r.sq)
  new <- list(z = c(0.1, 0.9))
  expect_same(predict(first, new), predict(second, new))
})
