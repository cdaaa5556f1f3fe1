test_that("principal components are Python's, under refund's names", {
  skip_without_python()
  python <- from_python("
from fdadp import FPCA, load_canadian_weather
X = load_canadian_weather().X.data_matrix[..., 0]
everything = {}
for method in ('face', 'dense', 'ssvd'):
    model = FPCA(n_components=3, method=method).fit(X)
    everything[method] = dict(efunctions=model.eigenfunctions_.T, evalues=model.eigenvalues_, mu=model.mean_,
                              scores=model.transform(X), Yhat=model.inverse_transform(model.transform(X)))
", "everything")
  for (method in names(python)) {
    ours <- fpca(weather()$X, npc = 3, method = method)
    for (name in names(python[[method]])) expect_same(ours[[name]], python[[method]][[name]], label = name)
    expect_identical(ours$npc, 3L)
  }
  expect_output(print(fpca(weather()$X, argvals = weather()$s)), "Functional principal components \\(face\\)")
  expect_identical(dim(fpca(weather()$X, npc = 2, Y.pred = weather()$X[1:4, ])$scores), c(4L, 2L))
  gaps <- weather()$X[, seq(1, 365, 12)]
  gaps[cbind(1:35, rep_len(1:31, 35))] <- NA
  expect_false(anyNA(fpca(gaps, npc = 2, method = "sc", n_basis = 8)$Yhat))
  expect_error(fpca(gaps), "must be finite", class = "fdadp_input_error")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_s3_class(plot(ours), "fdadp_fpca")
})

test_that("a plan is Python's", {
  skip_without_python()
  python <- from_python("
import fdadp
forecast = fdadp.plan(n=1000, epsilon=1.0, delta=1e-6, accuracy=0.9)
everything = dict(share=forecast.share, n=forecast.smallest_n, text=str(forecast))
", "everything")
  plan <- plan_dp(n = 1000, epsilon = 1, delta = 1e-6, accuracy = 0.9)
  expect_identical(plan$share, python$share)
  expect_identical(as.integer(plan$smallest_n), as.integer(python$n))
  expect_identical(plan$text, python$text)
  expect_named(plan$by_n, c("n", "share", "rmspe_ratio", "width_ratio"))
  expect_output(print(plan), "Forecast for n = 1,000")
  expect_error(plan_dp(n = 20, epsilon = 0.1), "it takes n >=", class = "fdadp_privacy_error")
  expect_error(plan_dp(), "n must be given", class = "fdadp_input_error")
})

test_that("plans of levels, survival and hazards are Python's", {
  skip_without_python()
  few_cohorts()
  python <- from_python("
from fdadp.planner import plan_hazards, plan_levels, plan_mixed, plan_survival
texts = [plan_levels(1000, 3, 1.0, 1e-6, rows=[0.0, 0.5, 0.5], n_components=2, icc=0.4),
        plan_survival(1000, 1.0, 1e-6, edges=range(4), survival=0.4, classes=2),
        plan_hazards('Surv(months, died) ~ age + C(sex)', 1000, 1.0, 1e-6, times=range(4), bounds={'age': (0, 1), 'sex': ['f', 'm']}),
        plan_hazards('Surv(months, died) ~ lf(X)', 1000, 1.0, 1e-6, times=range(4), bounds={'X': (0, 1)}, effects='level',
                     curves={'X': [[i * j / 100 for j in range(1, 6)] for i in range(1, 21)]}),
        plan_mixed('Y ~ age + C(sex) + re(id, covariance=\"free\")', 900, 1.0, 1e-6, bounds={'Y': (-6, 6), 'age': (0, 1), 'sex': ['f', 'm']},
                   max_rows=3, within=('age',), grids={'Y': 11}, explained=0.2, numbers={'age': (0.5, 0.2)})]
texts = [str(one) for one in texts]
", "texts")
  levels <- plan_levels(1000, 3, 1, 1e-6, rows = c(0, 0.5, 0.5), npc = 2, icc = 0.4)
  survival <- plan_survival(1000, 1, 1e-6, edges = 0:3, survival = 0.4, classes = 2)
  public <- list(age = c(0, 1), sex = c("f", "m"))
  hazards <- plan_hazards(Surv(months, died) ~ age + factor(sex), 1000, 1, 1e-6, times = 0:3, bounds = public)
  curves <- list(X = outer(1:20, 1:5) / 100)
  of_curves <- plan_hazards(Surv(months, died) ~ lf(X), 1000, 1, 1e-6, times = 0:3, bounds = list(X = 0:1), effects = "level", curves = curves)
  own <- c(public, list(Y = c(-6, 6)))
  mixed <- plan_mixed(
    Y ~ age + factor(sex) + re(id, covariance = "free"), 900, 1, 1e-6, bounds = own, max_rows = 3, within = "age", points = list(Y = 11),
    explained = 0.2, numbers = list(age = c(0.5, 0.2))
  )
  expect_identical(c(levels$text, survival$text, hazards$text, of_curves$text, mixed$text), unlist(python))
  expect_named(mixed$standard_errors, c("age", "sex"))
  expect_error(plan_mixed(Y ~ age, 900, bounds = own, max_rows = 3), "a term beside it", class = "fdadp_input_error")
  expect_identical(levels$captured$level, c("person", "row"))
  expect_named(survival$widths, c("time", "survival", "width", "exact_width", "difference_width"))
  expect_output(print(hazards), "explained share of the variance of hazards")
  expect_error(plan_levels(1000, 1), "max_rows must be at least 2", class = "fdadp_privacy_error")
  expect_error(plan_hazards(~age, 1000, times = 0:3, bounds = public), "formula must be of the form", class = "fdadp_input_error")
})

test_that("the plan of a formula is Python's, whatever the family", {
  skip_without_python()
  few_cohorts()
  python <- from_python("
import fdadp
bounds = {'X': (-4.0, 4.0), 'my age': (18.0, 90.0), 'died': (0.0, 1.0)}
forecast = fdadp.plan('died ~ lf(X) + `my age`', 500, 1.0, 1e-6, family='binomial', rate=0.2, bounds=bounds, grids={'X': 15})
everything = dict(share=forecast.share, text=str(forecast), age=forecast.importances['my age'])
", "everything")
  public <- list(X = c(-4, 4), `my age` = c(18, 90), died = 0:1)
  plan <- plan_dp(500, 1, 1e-6, formula = died ~ lf(X) + `my age`, family = "binomial", rate = 0.2, bounds = public, points = list(X = 15))
  expect_identical(plan$share, python$share)
  expect_identical(plan$text, python$text)
  expect_identical(plan$importances[["my age"]], python$age)
  expect_identical(plan$left_out, character())
  expect_output(print(plan), "simulated binomial responses have the mean")
  expect_error(plan_dp(500, formula = died ~ lf(X), bounds = 3), "bounds must be a list", class = "fdadp_input_error")
  expect_error(plan_dp(500, family = "binomial"), "left out without a formula", class = "fdadp_input_error")
  expect_error(plan_dp(500, formula = ~X, bounds = public), "of the form Y ~ terms", class = "fdadp_input_error")
})

test_that("what an earlier study found is told to a plan as in Python", {
  skip_without_python()
  few_cohorts()
  python <- from_python("
import fdadp
bounds = {'X': (-4.0, 4.0), 'age': (18.0, 90.0), 'y': (-12.0, 12.0)}
said = dict(effects='smooth', numbers={'age': (55.0, 14.0)}, importances={'lf(X)': 0.4, 'age': 0.6})
everything = dict(text=str(fdadp.plan('y ~ lf(X) + age', 500, 1.0, 1e-6, bounds=bounds, grids={'X': 15}, **said)))
curves = {'X': [[i * j / 100 for j in range(1, 16)] for i in range(1, 21)]}
everything['of_curves'] = str(fdadp.plan('y ~ lf(X) + age', 500, 1.0, 1e-6, bounds=bounds, grids={'X': 15}, curves=curves, **said))
", "everything")
  told <- function(...) {
    plan_dp(500, 1, 1e-6, formula = y ~ lf(X) + age, bounds = list(X = c(-4, 4), age = c(18, 90), y = c(-12, 12)), points = list(X = 15), ...)
  }
  plan <- told(effects = "smooth", numbers = list(age = c(55, 14)), importances = c("lf(X)" = 0.4, age = 0.6))
  expect_identical(plan$text, python$text)
  curves <- list(X = outer(1:20, 1:15) / 100)
  plan <- told(effects = "smooth", numbers = list(age = c(55, 14)), importances = c("lf(X)" = 0.4, age = 0.6), curves = curves)
  expect_identical(plan$text, python$of_curves)
  expect_error(told(curves = list(X = matrix(0, 3, 15))), "at least 20 persons", class = "fdadp_input_error")
  expect_error(plan_dp(500, curves = curves), "must be left out without a formula", class = "fdadp_input_error")
  expect_error(told(numbers = list(age = 55)), "numbers of age", class = "fdadp_input_error")
  expect_error(told(numbers = list(age = c(55, NA))), "numbers must not be NA", class = "fdadp_input_error")
  expect_error(told(importances = c(age = 1)), "importances must be numbers by name of term", class = "fdadp_input_error")
  expect_error(plan_dp(500, effects = "smooth"), "must be left out without a formula", class = "fdadp_input_error")
})

test_that("errors and coverage are what their definitions say", {
  skip_without_python()
  set.seed(3)
  Y <- matrix(rnorm(40), 8)
  Yhat <- matrix(rnorm(40), 8)
  expect_equal(rmspe(Y, Yhat), sqrt(mean((Y - Yhat)^2)), tolerance = 1e-14)
  expect_equal(coverage(Y, Y - 1, Y + c(-0.5, 1)), 0.5)
  expect_error(rmspe(Y, Yhat[, -1]), "Y_hat must have the shape of Y", class = "fdadp_input_error")
})

test_that("data are those of the Python package", {
  skip_without_python()
  data <- weather()
  expect_identical(dim(data$X), c(35L, 365L))
  expect_identical(data$stations$place[1], "St. Johns")
  expect_identical(simulate_affr(n = 5, seed = 1), simulate_affr(n = 5, seed = 1))
  expect_error(simulate_affr(scenario = 4), "scenario must be 1, 2 or 3, got 4", class = "fdadp_input_error")
})
