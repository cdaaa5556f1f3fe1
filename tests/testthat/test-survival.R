# Times to an event: regressions of person-periods, and private survival curves.

followed <- function() {
  set.seed(2)
  n <- 800
  s <- seq(0, 1, length.out = 25)
  X <- matrix(rnorm(3 * n), n) %*% rbind(1, sin(2 * pi * s), cos(2 * pi * s))
  age <- runif(n, -1, 1)
  time <- rexp(n, exp(0.6 * rowMeans(X) + 0.5 * age) / 6)
  end <- runif(n, 2, 16)
  list(X = X, age = age, arm = factor(sample(c("drug", "placebo"), n, TRUE)), months = pmin(time, end), died = time <= end)
}

public <- list(X = c(-5, 5), age = c(-1, 1), arm = c("drug", "placebo"))

test_that("a survival regression is Python's, predicts, and survives saving", {
  skip_without_python()
  d <- followed()
  fit <- survival_regression(Surv(months, died) ~ lf(X) + age + factor(arm), d, times = 0:8)
  main <- reticulate::import_main(convert = FALSE)
  for (name in c("X", "age", "months")) main[[paste0("own_", name)]] <- d[[name]]
  main$own_died <- as.numeric(d$died)
  main$own_arm <- as.character(d$arm)
  found <- from_python("
import numpy as np
from fdadp import SurvivalRegression, concordance
people = {'X': np.array(own_X, order='C'), 'age': np.array(own_age), 'months': np.array(own_months), 'died': np.array(own_died), 'arm': [str(a) for a in own_arm]}
model = SurvivalRegression('Surv(months, died) ~ lf(X) + age + C(arm)', times=range(9)).fit(people)
found = {'risk': model.predict(people), 'curves': model.predict_survival(people, [1, 4, 8]), 'hazard': model.predict(people, type='hazard'),
  'age': model.model_.coef('age', se=True).iloc[0].tolist(), 'baseline': model.baseline_hazard()['survival'].to_numpy(),
  'c': concordance(people['months'], people['died'], model.predict(people))}
", "found")
  expect_same(predict(fit, d), found$risk, tolerance = 1e-6)
  curves <- predict(fit, d, type = "survival", times = c(1, 4, 8))
  expect_same(curves, found$curves, tolerance = 1e-6)
  expect_identical(colnames(curves), c("1", "4", "8"))
  expect_same(predict(fit, d, type = "hazard"), found$hazard, tolerance = 1e-6)
  expect_same(unlist(coef(fit, "age")), unlist(found$age), tolerance = 1e-5)
  expect_same(fit$baseline$survival, found$baseline, tolerance = 1e-6)
  expect_equal(concordance(d$months, d$died, predict(fit, d)), found$c, tolerance = 1e-8)
  expect_identical(unserialize(serialize(fit, NULL)), fit)
  expect_lt(length(serialize(fit, NULL)), 2e5) # no rows: those of X are 160 kB alone
  expect_identical(names(confint(fit)), fit$term.names)
  expect_true(is.finite(AIC(fit)))
  expect_output(print(fit), "8 periods from 0 to 8")
  expect_output(print(summary(fit)), "person-periods in 8 periods")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(dim(plot(fit)), c(1L, 9L))
  expect_identical(dim(plot(fit, lapply(d, function(v) if (is.matrix(v)) v[1:3, ] else v[1:3]))), c(3L, 9L))
  expect_named(plot(fit, terms = "lf(X)"), "lf(X)")
})

test_that("with family poisson it is Cox's regression with Breslow's ties", {
  skip_without_python()
  coxph <- generic_of("survival", "coxph")
  d <- as.data.frame(followed()[c("age", "arm", "months", "died")])
  fit <- survival_regression(Surv(months, died) ~ age + arm, d, family = "poisson")
  Surv <- generic_of("survival", "Surv")
  cox <- coxph(Surv(months, died) ~ age + arm, d, ties = "breslow")
  expect_equal(coef(fit, "age")$value, unname(coef(cox)["age"]), tolerance = 1e-7)
  expect_equal(coef(fit, "age")$se, sqrt(vcov(cox)["age", "age"]), tolerance = 1e-6)
})

test_that("late entries are Cox's regression, and a row may be a stretch of time", {
  skip_without_python()
  coxph <- generic_of("survival", "coxph")
  Surv <- generic_of("survival", "Surv")
  d <- as.data.frame(followed()[c("age", "months", "died")])
  d$came <- pmax(0, stats::runif(nrow(d), -2, 3))
  d <- d[d$came < d$months, ]
  fit <- survival_regression(Surv(came, months, died) ~ age, d, family = "poisson")
  cox <- coxph(Surv(came, months, died) ~ age, d, ties = "breslow")
  expect_equal(coef(fit, "age")$value, unname(coef(cox)), tolerance = 1e-7)
  expect_equal(coef(fit, "age")$se, sqrt(vcov(cox)[1, 1]), tolerance = 1e-6)
  risk <- predict(fit, d)
  concordant <- generic_of("survival", "concordance")(Surv(came, months, died) ~ risk, d, reverse = TRUE)
  expect_equal(concordance(d$months, d$died, risk, d$came), concordant$concordance, tolerance = 1e-8)
  cut <- (d$came + d$months) / 2
  stretches <- rbind(transform(d, months = cut, died = FALSE), transform(d, came = cut))
  again <- survival_regression(Surv(came, months, died) ~ age, stretches, family = "poisson")
  expect_equal(coef(again, "age")$value, coef(fit, "age")$value, tolerance = 1e-7)
  expect_error(survival_regression(Surv(months, came, died) ~ age, d), "months must be before came", class = "fdadp_input_error")
  expect_error(survival_regression(Surv(came, months, died, age) ~ age, d), "Surv\\(entry, time, event\\)", class = "fdadp_input_error")
})

test_that("rows of a list are joined by their names, and rows of a data frame keep theirs", {
  skip_without_python()
  d <- followed()
  n <- length(d$age)
  people <- paste0("p", seq_len(n))
  fit <- survival_regression(Surv(months, died) ~ age, d, times = 0:8)
  set.seed(1)
  o <- sample(n)
  turned <- lapply(d[c("age", "months", "died")], stats::setNames, people)
  turned$age <- turned$age[o]
  again <- survival_regression(Surv(months, died) ~ age, turned, times = 0:8)
  expect_same(coef(again), coef(fit), tolerance = 1e-8)
  frame <- data.frame(age = d$age, months = d$months, died = d$died, row.names = people)
  shuffled <- survival_regression(Surv(months, died) ~ age, frame[o, ], times = 0:8)
  expect_same(coef(shuffled), coef(fit), tolerance = 1e-8)
  expect_identical(names(predict(fit, frame[c(3, 1), ])), c("p3", "p1"))
})

test_that("private hazards and survival curves are Python's, with ledgers", {
  skip_without_python()
  d <- followed()
  n <- length(d$age)
  privacy <- list(epsilon = 2, delta = 1e-6, n = n, seed = 1)
  fit <- survival_regression(Surv(months, died) ~ lf(X) + age + arm, d, times = 0:8, bounds = public, privacy = privacy)
  expect_match(ledger(fit)$headline, "differentially private end to end, epsilon = 2")
  expect_error(logLik(fit), class = "fdadp_privacy_error")
  expect_true(all(predict(fit, d) > 0 & predict(fit, d) < 1))
  expect_error(survival_regression(Surv(months, died) ~ age, d, privacy = privacy, bounds = public["age"]), "times must give public ends",
    class = "fdadp_privacy_error"
  )
  found <- private_survival(d, "months", "died", edges = 0:8, by = public["arm"], privacy = list(epsilon = 2, n = n, seed = 1))
  main <- reticulate::import_main(convert = FALSE)
  main$own_months <- d$months
  main$own_died <- as.numeric(d$died)
  main$own_arm <- as.character(d$arm)
  wanted <- from_python("
import numpy as np, pandas as pd
from fdadp import Privacy
from fdadp.summaries import private_survival
people = pd.DataFrame({'months': np.array(own_months), 'died': np.array(own_died), 'arm': [str(a) for a in own_arm]})
frame = private_survival(people, 'months', 'died', edges=range(9), by={'arm': ['drug', 'placebo']}, privacy=Privacy(2.0, n=800, random_state=1)).frame
wanted = {'value': frame['value'].to_numpy(), 'high': frame['high'].to_numpy()}
", "wanted")
  expect_same(found$table$value, wanted$value)
  expect_same(found$table$high, wanted$high)
  expect_identical(unique(found$table$group), c("drug", "placebo", "difference"))
  expect_match(ledger(found)$headline, "epsilon = 2")
  expect_output(print(found), "log-rank z")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(nrow(plot(found)), 16L)
  expect_error(private_survival(d, "months", "died", 0:8), "privacy must be a list", class = "fdadp_privacy_error")
})

test_that("other left sides are refused, and fdadp() says where Surv() belongs", {
  skip_without_python()
  d <- followed()
  expect_error(survival_regression(Surv(months, 1) ~ age, d), "Surv(time, event) ~ terms", fixed = TRUE, class = "fdadp_input_error")
  expect_error(survival_regression(months ~ age, d), "Surv(time, event) ~ terms", fixed = TRUE, class = "fdadp_input_error")
  expect_error(survival_regression(Surv(months, died) ~ weight, d), "data must have the column weight", class = "fdadp_input_error")
  expect_error(fdadp(Surv(months, died) ~ age, d), "survival_regression()", fixed = TRUE, class = "fdadp_input_error")
})
