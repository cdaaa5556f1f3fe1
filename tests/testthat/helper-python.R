# Without Python these tests are skipped by name; where FDADP_REQUIRE is set (CI), that is an error.
skip_without_python <- function() {
  config <- fdadp_config()
  if (!config$ok && nzchar(Sys.getenv("FDADP_REQUIRE"))) stop(config$problem, "\n", config$mend)
  testthat::skip_if_not(config$ok, config$problem)
}

# Run Python in this process and return one of its variables as R data.
from_python <- function(code, name) {
  reticulate::py_to_r(reticulate::py_run_string(code, convert = FALSE)[[name]])
}

# Forecasts of this process are of four cohorts, 12 to 128 else: R's and Python's are compared, and not judged.
few_cohorts <- function() {
  reticulate::py_run_string("
from fdadp.planner import forecast_of_formulas, forecast_of_mixed_models, forecast_of_multilevel_fpca, forecast_of_survival
from fdadp.planner.forecast_settings import Cohorts
for of_several in (forecast_of_formulas, forecast_of_mixed_models, forecast_of_survival):
    of_several.COHORTS = Cohorts(4, 4, 1.0)
forecast_of_multilevel_fpca.COHORTS = 4
")
}

# A function of a package that need not be there; loading it makes our methods known to it.
generic_of <- function(package, name) {
  testthat::skip_if_not(nzchar(system.file(package = package)), paste("package", package, "is not there"))
  getExportedValue(package, name)
}

ranef <- function(...) generic_of("nlme", "ranef")(...)

expect_same <- function(object, expected, tolerance = 1e-12, label = deparse(substitute(object))) {
  testthat::expect_identical(shape(object), shape(expected), label = label)
  difference <- max(abs(c(object) - c(expected)))
  testthat::expect_lte(difference, tolerance * max(1, abs(expected)), label = paste("difference of", label))
}

shape <- function(x) if (length(dim(x)) < 2) length(x) else dim(x)

weather <- function() {
  if (is.null(cache$weather)) cache$weather <- canadian_weather()
  cache$weather
}

weather_fit <- function() {
  if (is.null(cache$fit)) cache$fit <- with(weather(), affr(Y, X, s = s, t = t, npc = 2))
  cache$fit
}

private_fit <- function() {
  if (is.null(cache$private)) {
    cache$cohort <- simulate_affr(scenario = 1, n = 1000, seed = 0)
    cache$private <- with(cache$cohort, dp_affr(Y, X, epsilon = 1, delta = 1e-6, n = 1000, bounds = bounds))
  }
  cache$private
}

terms_data <- function() {
  if (is.null(cache$terms)) {
    sim <- simulate_affr(scenario = 1, n = 60, seed = 3, n_points = 31)
    set.seed(1)
    d <- data.frame(age = stats::runif(60, 20, 70), region = factor(sample(c("west", "east", "north"), 60, TRUE), c("west", "east", "north")))
    d$X <- sim$X
    d$Z <- sim$X[60:1, ] / 2
    d$Y <- sim$Y + outer(d$age / 50, sim$t) + outer(as.integer(d$region), 1 - sim$t)
    d$number <- rowMeans(d$X) + d$age / 30 + stats::rnorm(60, sd = 0.2)
    cache$terms <- d
  }
  cache$terms
}

terms_fit <- function() {
  if (is.null(cache$terms_fit)) cache$terms_fit <- fdadp(Y ~ ff(X) + s(age, k = c(6, 5)) + region, data = terms_data())
  cache$terms_fit
}

bounds <- list(X = c(-4.5, 4.5), Y = c(-8, 8))
cache <- new.env()
