# Contrasts, slopes and differences: Python's, of mgcv's rows, and of private fits.

trial <- function(n = 90) {
  set.seed(5)
  t <- seq(0, 1, length.out = 21)
  arm <- sample(c("drug", "high", "placebo"), n, TRUE)
  age <- runif(n, 20, 80)
  Y <- outer(arm == "drug", sin(pi * t)) + outer(arm == "high", 2 * t) + outer(age / 50, rep(1, 21)) + matrix(rnorm(21 * n, sd = 0.3), n)
  list(arm = arm, age = age, Y = Y, y = rowMeans(Y) + rnorm(n, sd = 0.2), t = t)
}

test_that("contrasts, slopes and differences along t are those of predictions", {
  skip_without_python()
  d <- trial()
  fit <- fdadp(Y ~ factor(arm) + age, data = d[c("arm", "age", "Y")])
  found <- level_contrasts(fit, "arm")
  expect_identical(unique(found$contrast), c("high - drug", "placebo - drug", "placebo - high"))
  at <- function(arm, age = 50) predict(fit, list(arm = arm, age = age))
  expect_equal(found$value[found$contrast == "placebo - drug"], as.vector(at("placebo") - at("drug")), tolerance = 1e-8)
  expect_lt(attr(found, "test")$p[2], 0.01)
  one <- mean_difference(fit, list(arm = "high", age = 60), list(arm = "drug", age = 30), t = c(0.25, 0.5))
  expect_equal(one$value, as.vector(at("high", 60) - at("drug", 30))[c(6, 11)], tolerance = 1e-8)
  expect_identical(one$t, c(0.25, 0.5))
  slope <- average_slopes(fit, "age")
  expect_equal(slope$value, as.vector(at("drug", 51) - at("drug", 50)), tolerance = 1e-6)
  expect_true(all(slope$lower_all < slope$lower & slope$upper < slope$upper_all))
  new <- data.frame(arm = c("drug", "high"), age = c(30, 40), row.names = c("p3", "p1"))
  each <- average_slopes(fit, "age", newdata = new, average = FALSE)
  expect_identical(unique(each$row), c("p3", "p1"))
  again <- unserialize(serialize(fit, NULL))
  expect_equal(level_contrasts(again, "arm")$value, found$value, tolerance = 1e-8)
  expect_output(print(found), "contrasts of arm")
  expect_output(print(found), "placebo - drug: p = ")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(found), found)
  expect_error(level_contrasts(fit, "age"), "must be a factor", class = "fdadp_input_error")
  expect_error(level_contrasts(1, "arm"), "object must be a fit", class = "fdadp_input_error")
})

test_that("prediction intervals hold whole curves", {
  skip_without_python()
  d <- trial()
  fit <- fdadp(Y ~ age, data = d[c("age", "Y")])
  new <- list(age = c(30, 60))
  narrow <- predict(fit, new, interval = "prediction")
  wide <- predict(fit, new, interval = "prediction", simultaneous = TRUE)
  expect_true(all(wide$lwr < narrow$lwr & narrow$upr < wide$upr))
  expect_error(predict(fit, new, interval = "prediction", level = 0.999, simultaneous = TRUE), "level must be at most", class = "fdadp_input_error")
})

test_that("of numbers they are those of mgcv's rows", {
  skip_without_python()
  gam <- generic_of("mgcv", "gam")
  d <- trial(150)
  d$count <- rpois(150, exp(0.3 + 0.5 * (d$arm == "drug") + d$age / 100))
  d <- as.data.frame(d[c("arm", "age", "count")])
  fit <- fdadp(count ~ s(age, bs = "ps") + factor(arm), data = d, family = "poisson")
  theirs <- gam(count ~ s(age, bs = "ps") + factor(arm), data = d, family = poisson(), sp = unname(fit$sp), method = "REML")
  means <- function(level) {
    rows <- predict(theirs, transform(d, arm = level), type = "lpmatrix")
    mu <- exp(as.vector(rows %*% coef(theirs)))
    list(mean = mean(mu), gradient = colMeans(mu * rows))
  }
  one <- means("placebo")
  two <- means("drug")
  found <- level_contrasts(fit, "arm", how = "reference", se = "iid")
  own <- found[found$contrast == "placebo - drug", ]
  expect_equal(own$value, one$mean - two$mean, tolerance = 1e-6)
  away <- one$gradient - two$gradient
  expect_equal(own$se, sqrt(drop(away %*% vcov(theirs) %*% away)), tolerance = 1e-6)
})

test_that("private fits answer from what was released", {
  skip_without_python()
  d <- trial(400)
  fit <- dp_fdadp(y ~ factor(arm) + age,
    data = as.data.frame(d[c("arm", "age", "y")]), epsilon = 2, delta = 1e-6, n = 400, seed = 1,
    bounds = list(y = c(-1, 5), arm = c("drug", "high", "placebo"), age = c(20, 80))
  )
  found <- level_contrasts(fit, "arm", newdata = list(arm = "drug", age = 50))
  expect_equal(nrow(found), 3)
  means <- predict(fit, list(arm = c("drug", "high"), age = c(50, 50)))
  expect_equal(found$value[1], unname(means[2] - means[1]), tolerance = 1e-6)
  expect_error(level_contrasts(fit, "arm"), "private", class = "fdadp_privacy_error")
  expect_output(print(found), "nothing more is spent")
})
