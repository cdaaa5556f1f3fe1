# Models of several terms: R's formula is walked here, the numbers are Python's on the same data.

# The same model by Python's own names.
python_terms <- "
import numpy as np, pandas as pd
from fdadp import FunctionalRegression, terms
def model(X, Y, age, region, levels):
    data = {'X': np.array(X, order='C'), 'Y': np.array(Y, order='C'), 'age': np.asarray(age), 'region': pd.Categorical(region, categories=levels)}
    m = FunctionalRegression([terms.ff('X'), terms.s('age', k=(6, 5)), terms.factor('region')]).fit(data)
    new = {name: v[:4] for name, v in data.items()}
    return {'fitted': m.fitted_values_, 'sp': m.smoothing_parameters_, 'edf': m.edf_, 'criterion': m.criterion_,
            'predicted': m.predict(new), 'se': m.predict_se(new), 'coef': m.coef('ff(X)', s=[0.25, 0.5], t=[0.1])['value'].to_numpy(),
            'tests': m.test_terms()['statistic'].to_numpy(), 'vcov': m.vcov().to_numpy()}
"

test_that("a formula of R gives Python's numbers", {
  skip_without_python()
  d <- terms_data()
  fit <- terms_fit()
  python <- reticulate::py_run_string(python_terms, convert = FALSE)
  expected <- reticulate::py_to_r(python$model(d$X, d$Y, array(d$age), as.list(as.character(d$region)), as.list(levels(d$region))))
  expect_same(fitted(fit), expected$fitted)
  expect_same(unname(fit$sp), c(expected$sp), 1e-10)
  expect_equal(c(fit$edf, fit$criterion), c(expected$edf, expected$criterion))
  new <- predict(fit, d[1:4, ], se.fit = TRUE)
  expect_same(unname(new$fit), expected$predicted)
  expect_same(unname(new$se.fit), expected$se)
  expect_same(coef(fit, "ff(X)", s = c(0.25, 0.5), t = 0.1)$value, c(expected$coef), 1e-10)
  expect_same(anova(fit)$statistic, c(expected$tests), 1e-9)
  expect_same(unname(vcov(fit)), expected$vcov, 1e-10)
  expect_identical(unique(coef(fit, "region")$region), levels(d$region)) # in R's order: the first is the reference
})

test_that("a fit whose model has left the session has the same standard errors", {
  # After 16 more fits, or in another session, they took the smoothing parameters as known.
  skip_without_python()
  fit <- terms_fit()
  again <- fit
  again$key <- "left"
  expect_same(vcov(again), vcov(fit), 1e-6)
  expect_same(predict(again, terms_data()[1:4, ], se.fit = TRUE)$se.fit, predict(fit, terms_data()[1:4, ], se.fit = TRUE)$se.fit, 1e-6)
  expect_equal(dim(vcov(again, unconditional = TRUE)), dim(vcov(fit)))
})

test_that("on eigenfunctions sff() alone is affr()", {
  skip_without_python()
  d <- terms_data()
  fit <- fdadp(Y ~ sff(X, k = c(5, 6, 7)), data = d, response_basis = "eigen", npc = 2, smoothing = c(0.5, 3))
  own <- affr(d$Y, d$X, k = c(7, 6), npc = 2, sp = c(3, 0.5))
  expect_same(fitted(fit), unname(fitted(own)), 1e-9)
  expect_identical(dim(fit$sp), c(2L, 2L))
  expect_same(predict(fit, d[1:3, ]), fitted(fit)[1:3, ], 1e-9)
  fit$key <- "gone" # made again
  expect_same(predict(fit, d[1:3, ]), fitted(fit)[1:3, ], 1e-9)
  expect_error(fdadp(number ~ age, data = d, response_basis = "eigen"), "response_basis must be \"splines\" where the response is a number")
  expect_error(fdadp(Y ~ age, data = d, response_basis = "eigne"), "response_basis must be one of 'splines', 'eigen'")
})

test_that("the S3 methods agree with each other", {
  skip_without_python()
  fit <- terms_fit()
  d <- terms_data()
  expect_s3_class(fit, "fdadp_regression")
  expect_equal(fitted(fit) + residuals(fit), d$Y, ignore_attr = TRUE)
  expect_equal(predict(fit), fitted(fit))
  parts <- predict(fit, d, type = "terms")
  expect_named(parts, names(fit$term.edf))
  expect_equal(Reduce(`+`, parts), fitted(fit), ignore_attr = TRUE)
  expect_equal(predict(fit, d, type = "link"), fitted(fit))
  expect_equal(sum(fit$term.edf), fit$edf)
  expect_identical(dim(vcov(fit)), rep(length(coef(fit)), 2))
  expect_identical(names(coef(fit)), rownames(vcov(fit)))
  wider <- vcov(fit, unconditional = TRUE) # mgcv's: what estimating smoothing parameters adds
  expect_equal(wider, vcov(fit, se = "unconditional"))
  expect_true(min(eigen(wider - vcov(fit, se = "iid"), TRUE, only.values = TRUE)$values) > -1e-8 * max(diag(wider)) && any(diag(wider) > diag(vcov(fit, se = "iid"))))
  expect_true(all(predict(fit, se.fit = TRUE, unconditional = TRUE)$se.fit >= predict(fit, se.fit = TRUE, se = "iid")$se.fit - 1e-12))
  expect_error(vcov(fit, se = "iid", unconditional = TRUE), "se must be NULL with unconditional = TRUE, got 'iid'")
  band <- confint(fit, "s(age)", level = 0.9)[["s(age)"]]
  wide <- confint(fit, "s(age)", level = 0.9, simultaneous = TRUE)[["s(age)"]]
  expect_true(all(band$lower <= band$value & wide$lower <= band$lower & wide$upper >= band$upper))
  expect_true(mean(coef(fit, "ff(X)", se = "iid")$se) != mean(coef(fit, "ff(X)")$se))
  expect_equal(AIC(fit), -2 * c(logLik(fit)) + 2 * attr(logLik(fit), "df"))
  expect_equal(attr(logLik(fit), "nobs"), length(d$Y))
  expect_identical(nobs(fit), 60L)
  expect_identical(deparse(formula(fit)), "Y ~ ff(X) + s(age, k = c(6, 5)) + region")
  expect_output(print(fit), "do not release")
  expect_output(print(summary(fit)), "< 2.2e-16|Pr\\(>Wald\\)")
  drawn <- simulate(fit, 2, seed = 1)
  expect_identical(drawn, simulate(fit, 2, seed = 1))
  expect_equal(sd(drawn[[1]] - fitted(fit)), sigma(fit), tolerance = 0.2)
  interval <- predict(fit, d[1:3, ], interval = "prediction")
  expect_true(all(interval$lwr < interval$fit & interval$fit < interval$upr))
  expect_identical(dim(predict(fit, d[1:3, ], t = c(0.2, 0.5))), c(3L, 2L))
})

test_that("people with several curves make standard errors by person", {
  skip_without_python()
  d <- terms_data()
  d$person <- rep(1:20, 3)
  fit <- fdadp(Y ~ age, data = d, groups = person)
  expect_identical(fit$se, "cluster")
  expect_identical(coef(fit, "age"), coef(fit, "age", se = "cluster"))
  expect_false(isTRUE(all.equal(coef(fit, "age")$se, coef(fit, "age", se = "curve")$se)))
  expect_error(coef(terms_fit(), "ff(X)", se = "cluster"), "needs groups", class = "fdadp_input_error")
})

test_that("curves at points of their own are refund's ydata", {
  skip_without_python()
  d <- terms_data()
  t <- seq(0, 1, length.out = 31)
  whole <- data.frame(.obs = rep(1:60, 31), .index = rep(t, each = 60), .value = c(d$Y))
  ydata <- whole[sample(nrow(whole), 1500), ]
  fit <- fdadp(Y ~ ff(X) + age, data = d[c("X", "age")], ydata = ydata)
  expect_equal(fitted(fit) + residuals(fit), ydata$.value)
  curves <- predict(fit, d, t = t)
  expect_equal(curves[cbind(ydata$.obs, match(ydata$.index, t))], fitted(fit), tolerance = 1e-8)
  all <- fdadp(Y ~ ff(X) + age, data = d[c("X", "age")], ydata = whole)
  expect_equal(fitted(all), c(fitted(fdadp(Y ~ ff(X) + age, data = d))), tolerance = 1e-5)
  expect_error(fdadp(Y ~ age, data = d, ydata = whole[1:2]), "columns .obs, .index and .value", class = "fdadp_input_error")
})

test_that("estimates weighted by the covariance along the curve", {
  skip_without_python()
  least_squares <- fdadp(Y ~ age, data = terms_data())
  weighted <- fdadp(Y ~ age, data = terms_data(), errors = "curve")
  expect_false(isTRUE(all.equal(fitted(weighted), fitted(least_squares))))
  expect_equal(fitted(weighted), fitted(least_squares), tolerance = 0.2)
})

test_that("two fits are compared, and what is not nested is refused", {
  skip_without_python()
  small <- fdadp(Y ~ ff(X) + region, data = terms_data())
  large <- fdadp(Y ~ ff(X) + age + region, data = terms_data())
  table <- anova(small, large)
  expect_s3_class(table, "anova")
  expect_identical(table, anova(large, small))
  expect_lt(table$`Pr(>Wald)`[2], 0.01)
  other <- fdadp(Y ~ s(age), data = terms_data())
  expect_error(anova(small, other), "must have some of the terms", class = "fdadp_input_error")
})

test_that("terms are what the formula says", {
  skip_without_python()
  d <- terms_data()
  names_of_terms <- function(formula, ...) setdiff(names(fdadp(formula, data = d, ...)$term.edf), c("(Intercept)", "s(t)"))
  expect_identical(names_of_terms(Y ~ X), "concurrent(X)")
  expect_identical(names_of_terms(Y ~ log(age) + c(I(age^2 / 100))), c("log(age)", "c(I(age^2/100))"))
  expect_identical(names_of_terms(Y ~ sff(X, k = c(5, 5, 5)) + ffpc(Z, npc = 2)), c("sff(X)", "ffpc(Z)"))
  expect_identical(names_of_terms(Y ~ region:ff(X)), "ff(X):region")
  expect_identical(names_of_terms(Y ~ s(age, by = region)), "s(age):region")
  expect_identical(names_of_terms(Y ~ region:age), "age:region")
  expect_identical(names_of_terms(Y ~ c(s(region, bs = "re"))), "re(region)")
  expect_length(fdadp(Y ~ 0 + c(age), data = d)$term.edf, 1)
  k <- 6
  by_name <- fdadp(Y ~ ff(Z, k = c(k, k), m = list(c(2, 1), c(2, 1)), limits = "s<=t"), data = d) # evaluated in R
  expect_length(by_name$sp, 3)
  same <- fdadp(Y ~ ff(X, integration = "simpson"), data = d)
  expect_equal(fitted(same), fitted(fdadp(Y ~ ff(X, rule = "simpson_legacy"), data = d)))
  twice <- fdadp(Y ~ region + ff(X) + region:ff(X), data = d)
  expect_length(twice$term.edf, 5)
})

test_that("grids come from arguments, attributes and xind", {
  skip_without_python()
  d <- as.list(terms_data())
  s <- seq(0, 4, length.out = 31)
  t <- seq(1, 2, length.out = 31)
  fit <- fdadp(Y ~ ff(X), data = d, grids = list(X = s), yind = t)
  expect_equal(range(coef(fit, "ff(X)")$s), c(0, 4))
  expect_equal(fit$t, t)
  expect_equal(fitted(fdadp(Y ~ ff(X, xind = s), data = d, yind = t)), fitted(fit))
  attr(d$X, "grid") <- s
  expect_equal(fitted(fdadp(Y ~ ff(X), data = d, yind = t)), fitted(fit))
  half <- predict(fit, list(X = terms_data()$X[1:3, seq(1, 31, 2)]), grids = list(X = s[seq(1, 31, 2)]))
  expect_equal(half, fitted(fit)[1:3, ], tolerance = 0.05)
})

test_that("responses that are numbers, and families", {
  skip_without_python()
  d <- terms_data()
  fit <- fdadp(number ~ lf(X, k = 10) + s(age), data = d)
  expect_null(fit$t)
  expect_length(predict(fit, d[1:5, ]), 5)
  expect_identical(dim(predict(fit, d[1:5, ], type = "terms")), c(5L, 3L))
  expect_gt(fit$r.sq, 0.5)
  d$sick <- factor(ifelse(d$number > median(d$number), "yes", "no"))
  logistic <- fdadp(sick ~ age, data = d, family = binomial())
  classical <- glm(sick ~ age, data = d, family = binomial())
  expect_equal(unname(fitted(logistic)), unname(fitted(classical)), tolerance = 1e-6)
  expect_equal(unname(predict(logistic, d, type = "link")), unname(predict(classical)), tolerance = 1e-6)
  expect_equal(c(logLik(logistic)), c(logLik(classical)), tolerance = 1e-6)
  expect_true(all(unlist(simulate(logistic, seed = 1)) %in% 0:1))
  expect_error(fdadp(number ~ age, data = d, family = Gamma()), "link of family Gamma must be log, got inverse", class = "fdadp_input_error")
  d$count <- stats::rpois(60, exp(d$age / 30))
  spread <- fdadp(count ~ age, data = d, family = "negative_binomial(2)")
  drawn <- simulate(spread, nsim = 20, seed = 1)
  expect_gt(stats::var(unlist(drawn) / rep(fitted(spread), 20)), 0.5)
  expect_identical(family(spread)$family, "Negative Binomial(2)")
  expect_equal(deviance(spread), sum(family(spread)$dev.resids(d$count, fitted(spread), 1)))
  chosen <- fdadp(count ~ age, data = d, family = "negative_binomial")
  expect_equal(as.numeric(AIC(chosen)), -2 * as.numeric(logLik(chosen)) + 2 * chosen$df)
  expect_equal(chosen$df, chosen$edf + 1)
  expect_error(fdadp(count ~ age, data = d, family = "negative_binomial(-1)"), "theta must be a positive number", class = "fdadp_input_error")

  d$number[1:3] <- d$number[1:3] + 50
  long <- fdadp(number ~ age, data = d, family = "scaled_t(4, 2)")
  expect_identical(family(long)$family, "Scaled t(4,2)")
  expect_equal(deviance(long), sum(family(long)$dev.resids(d$number, fitted(long), 1)))
  expect_equal(residuals(long, "pearson"), residuals(long) / sqrt(family(long)$variance(fitted(long))))
  expect_length(unlist(simulate(long, nsim = 2, seed = 1)), 120)
  tails <- fdadp(number ~ age, data = d, family = "scaled_t")
  expect_equal(tails$df, tails$edf + 2)
  expect_lt(AIC(tails), AIC(fdadp(number ~ age, data = d)))
  scat <- generic_of("mgcv", "scat")
  expect_equal(fitted(fdadp(number ~ age, data = d, family = scat(theta = c(4, 2)))), fitted(long))
  expect_equal(fitted(fdadp(number ~ age, data = d, family = scat())), fitted(tails))
  theirs <- generic_of("mgcv", "gam")(number ~ age, data = as.data.frame(d[c("number", "age")]), family = scat(), method = "REML")
  expect_equal(unname(fitted(fdadp(number ~ age, data = d, family = family(theirs)))), as.numeric(fitted(theirs)), tolerance = 1e-6)

  latent <- (d$age - mean(d$age)) / 10 + stats::rlogis(60)
  d$pain <- factor(c("none", "mild", "worst")[findInterval(latent, c(-1, 1)) + 1], levels = c("none", "mild", "worst"), ordered = TRUE)
  graded <- fdadp(pain ~ age, data = d, family = "ordered")
  chance <- predict(graded, d, type = "probs")
  expect_identical(colnames(chance), levels(d$pain))
  expect_equal(unname(rowSums(chance)), rep(1, 60))
  expect_equal(drop(chance %*% 1:3), fitted(graded), ignore_attr = TRUE)
  expect_equal(deviance(graded), -2 * sum(log(chance[cbind(1:60, as.integer(d$pain))])))
  expect_equal(graded$df, graded$edf + 1)
  expect_equal(family(graded)$linkinv(predict(graded, d, type = "link")), fitted(graded), ignore_attr = TRUE)
  spread <- drop(chance %*% (1:3)^2) - fitted(graded)^2
  expect_equal(residuals(graded, "pearson"), residuals(graded) / sqrt(spread), ignore_attr = TRUE)
  expect_true(all(unlist(simulate(graded, nsim = 5, seed = 1)) %in% 1:3))
  ocat <- generic_of("mgcv", "ocat")
  d$grade <- as.integer(d$pain)
  theirs <- generic_of("mgcv", "gam")(grade ~ age, data = as.data.frame(d[c("grade", "age")]), family = ocat(R = 3), method = "REML")
  expect_equal(unname(chance), unname(predict(theirs, d, type = "response")), tolerance = 1e-5)
  cuts <- theirs$family$getTheta(TRUE)
  given <- fdadp(grade ~ age, data = d, family = ocat(theta = diff(cuts)))
  expect_equal(given$theta, cuts)
  expect_equal(unname(predict(given, d, type = "probs")), unname(chance), tolerance = 1e-5)
  expect_identical(fdadp(grade ~ age, data = d, family = ocat(R = 3))$df, graded$df)
  their_se <- predict(theirs, d, type = "response", se.fit = TRUE)$se.fit
  own <- predict(graded, d, type = "probs", se.fit = TRUE, se = "iid")
  expect_identical(own$fit, chance)
  expect_identical(dimnames(own$se.fit), dimnames(chance))
  expect_equal(unname(own$se.fit), unname(their_se), tolerance = 1e-5)
  expect_error(predict(graded, d, type = "terms", se.fit = TRUE), "'link' or 'probs' with se.fit", class = "fdadp_input_error")
  expect_error(predict(fdadp(count ~ age, data = d, family = "poisson"), d, type = "probs"), "predict_proba is there for", class = "fdadp_input_error")
  expect_error(fdadp(number ~ age, data = d, family = "ordered"), "whole numbers of categories", class = "fdadp_input_error")

  poisson_fit <- fdadp(count ~ age + offset(log(age)), data = d, family = "poisson")
  theirs <- glm(count ~ age + offset(log(age)), data = d, family = poisson())
  expect_equal(unname(fitted(poisson_fit)), unname(fitted(theirs)), tolerance = 1e-6)
  new <- data.frame(age = c(30, 60))
  expect_equal(unname(predict(poisson_fit, new)), unname(predict(theirs, new, type = "response")), tolerance = 1e-6)
  their_se <- predict(theirs, new, type = "link", se.fit = TRUE)$se.fit
  expect_equal(unname(predict(poisson_fit, new, type = "link", se.fit = TRUE)$se.fit), unname(their_se), tolerance = 1e-6)
  given <- fdadp(count ~ age, data = d, family = "poisson", offset = log(age))
  expect_equal(predict(given, new), predict(poisson_fit, new))
  expect_equal(predict(given), fitted(given))
  expect_error(predict(given, new, interval = "prediction"), "without an offset", class = "fdadp_input_error")
  expect_identical(dim(predict(fdadp(Y ~ 1, data = d), d[1:4, ])), c(4L, 31L))
})

test_that("a fit survives saveRDS, and another session makes its model again", {
  skip_without_python()
  fit <- terms_fit()
  expect_false("externalptr" %in% unlist(rapply(unclass(fit), typeof, how = "list")))
  path <- tempfile(fileext = ".rds")
  on.exit(unlink(path))
  saveRDS(fit, path)
  again <- readRDS(path)
  expect_identical(again, fit)
  here <- predict(fit, terms_data()[1:3, ], se.fit = TRUE)
  again$key <- "of another session"
  expect_equal(predict(again, terms_data()[1:3, ], se.fit = TRUE), here, tolerance = 1e-8)
})

test_that("what cannot be is said in the words of the formula", {
  skip_without_python()
  d <- terms_data()
  expect_error(fdadp(Y ~ ff(nothing), data = d), "nothing in the formula cannot be evaluated", class = "fdadp_input_error")
  expect_error(fdadp(~ ff(X), data = d), "of the form Y ~ terms", class = "fdadp_input_error")
  expect_error(fdadp(Y ~ ff(X, q = 3), data = d), "ff\\(X\\).*'q'", class = "fdadp_input_error")
  expect_error(fdadp(Y ~ lf(X), data = d), "must have a response that is a number", class = "fdadp_input_error")
  expect_error(fdadp(Y ~ ff(X):s(age), data = d), "interactions must be with a column", class = "fdadp_input_error")
  new <- d[1:3, ]
  new$region <- c("west", "mars", "east")
  expect_error(predict(terms_fit(), new), "mars", class = "fdadp_input_error")
  expect_error(predict(terms_fit(), d[c("X", "age")]), "newdata must hold region", class = "fdadp_input_error")
  expect_error(coef(terms_fit(), "ff(Z)"), "must be a term of the model", class = "fdadp_input_error")
  expect_error(fdadp(Y ~ age, data = d, family = "tweedie"), "family must be one of", class = "fdadp_input_error")
  d$age[3] <- NA
  expect_error(fdadp(Y ~ age, data = d), "age.*row 3", class = "fdadp_input_error")
})

test_that("pictures of terms", {
  skip_without_python()
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  shown <- plot(terms_fit())
  expect_named(shown, c("s(t)", "ff(X)", "s(age)", "region"))
  expect_named(plot(terms_fit(), "region", simultaneous = TRUE), "region")
})

test_that("subset takes rows of all columns, also of those outside the data", {
  skip_without_python()
  d <- terms_data()
  weight <- seq_len(nrow(d)) / nrow(d)
  some <- d$age > stats::median(d$age)
  fit <- fdadp(Y ~ ff(X) + age, data = d, subset = age > stats::median(age), weights = weight)
  kept <- d[some, ]
  kept$weight <- weight[some]
  expect_equal(fitted(fit), fitted(fdadp(Y ~ ff(X) + age, data = kept, weights = weight)), tolerance = 1e-10)
  expect_equal(nobs(fdadp(Y ~ age, data = d, subset = -1)), nrow(d) - 1)
  expect_error(fdadp(Y ~ age, data = d, subset = c(TRUE, FALSE)), "subset must be numbers of rows", class = "fdadp_input_error")
})

test_that("rows of columns are joined by their names, whatever their order", {
  skip_without_python()
  set.seed(1)
  n <- 60
  people <- data.frame(sex = rep(0:1, n / 2), row.names = paste0("p", seq_len(n)))
  t <- seq(0, 1, length.out = 7)
  Y <- outer(people$sex, t) + matrix(stats::rnorm(n * 7, sd = 0.3), n)
  rownames(Y) <- row.names(people)
  fit <- fdadp(Y ~ sex, data = people)
  other <- people[sample(n), , drop = FALSE]
  expect_message(again <- fdadp(Y ~ sex, data = other), "joined 60 of 60 by row label")
  expect_same(again$edf, fit$edf, tolerance = 1e-6)
  expect_same(fitted(again), fitted(fit), tolerance = 1e-6)
  expect_identical(rownames(fitted(again)), rownames(Y))
  expect_message(fewer <- fdadp(Y ~ sex, data = people[n:3, , drop = FALSE]), "joined 58 of 60 by row label")
  expect_identical(rownames(fitted(fewer)), rownames(Y)[-(1:2)])
  weights <- stats::setNames(stats::runif(n), rev(row.names(people)))
  expect_message(weighted <- fdadp(Y ~ sex, data = people, weights = weights), "joined 60 of 60")
  expect_same(fitted(weighted), fitted(fdadp(Y ~ sex, data = people, weights = rev(weights))), tolerance = 1e-6)
  other$known <- stats::runif(n)
  some <- paste0("p", 11:50)
  straight <- fdadp(Y ~ sex + offset(known), data = other[rownames(Y), ], subset = 11:50)
  expect_message(turned <- fdadp(Y ~ sex + offset(known), data = other[some[40:1], ]), "joined 40 of 60")
  expect_same(turned$edf, straight$edf, tolerance = 1e-6)
  expect_same(fitted(turned), fitted(straight), tolerance = 1e-6)
  plain <- other$sex
  X <- Y[n:1, ]
  expect_error(fdadp(Y ~ ff(X) + plain), "must have the same row labels", class = "fdadp_input_error")
})

test_that("gaps are treated by column, and errors say how in R", {
  skip_without_python()
  d <- terms_data()
  d$X[3, 5:8] <- NA
  d$age[7] <- NA
  said <- tryCatch(fdadp(number ~ lf(X) + age, data = d), error = conditionMessage)
  expect_match(said, 'missing = list(X = "linear", age = "indicator")', fixed = TRUE)
  fit <- fdadp(number ~ lf(X) + age, data = d, missing = list(X = "linear", age = "indicator"))
  expect_true(any(grepl("missing", names(fit$term.edf))))
  expect_error(fdadp(number ~ lf(X) + age, data = d, missing = list("linear")), "by column", class = "fdadp_input_error")
  expect_error(fdadp(number ~ lf(X) + age, data = d, missing = "any"), "missing", class = "fdadp_input_error")
})

test_that("terms are left out of predictions as in mgcv", {
  skip_without_python()
  d <- terms_data()
  fit <- fdadp(number ~ lf(X) + s(age), data = d)
  parts <- predict(fit, d, type = "terms")
  expect_same(predict(fit, d, exclude = "s(age)"), predict(fit, d) - parts[, "s(age)"], tolerance = 1e-10)
  expect_false("s(age)" %in% colnames(predict(fit, d, type = "terms", exclude = "s(age)")))
  expect_error(predict(fit, d, exclude = "s(none)"), class = "fdadp_input_error")
  expect_error(predict(fit, d, exclude = "s(age)", se.fit = TRUE), "exclude", class = "fdadp_input_error")
})

test_that("circles and slopes of groups pass through", {
  skip_without_python()
  d <- terms_data()
  fit <- fdadp(Y ~ ff(X, period = 2) + age, data = d, t_period = 2, smoothing = c(1, 1, 1, 1))
  expect_same(unname(predict(fit, d[1:3, ])), unname(fitted(fit)[1:3, ]))
  ends <- coef(fit, "ff(X)", s = c(0, 2), t = c(0, 2))$value
  expect_lt(max(abs(ends - ends[1])), 1e-10)
  expect_error(fdadp(Y ~ age, data = d, t_period = 0.1), "t_period must be at least the length of the domain of the response")
  expect_error(fdadp(number ~ age, data = d, t_period = 2), "t_period must be NULL where the response is a number")
  slopes <- fdadp(number ~ age + s(region, by = age, bs = "re"), data = d, smoothing = 2)
  expect_same(fitted(slopes), fitted(fdadp(number ~ age + re(region, by = age), data = d, smoothing = 2)))
  expect_identical(coef(slopes, "re(region):age")$region, levels(d$region))
})
