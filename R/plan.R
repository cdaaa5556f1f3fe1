#' What a private fit will be worth
#'
#' Predicts, before any data are touched, what [dp_affr()] will explain, by simulation from the public prior. It also
#' finds which n or epsilon is enough for a wanted accuracy. A request too small to be useful is an error that says what
#' it takes. With a formula it plans the fit of [dp_fdadp()] and simulates it on 16 to 128 cohorts, which takes up to
#' half a minute.
#'
#' @param n Number of people; may be left out where `accuracy` is given.
#' @param epsilon,delta The budget; `delta` left out or 0 means pure epsilon.
#' @param accuracy Wanted share of the explainable variance, between 0 and 1.
#' @param adjacency `"zero-out"` (default), `"add-remove"` or `"replace"`, see [dp_affr()].
#' @param formula,bounds Of [dp_fdadp()]: a model of several terms, and what is public of its columns.
#' @param points Numbers of points of curves by column, `list(X = 51)`; default 51.
#' @param family,rate Of [dp_fdadp()], with a formula: `"gaussian"`, `"binomial"` or `"poisson"`, and of these two the share of
#'   ones, or the mean, that is expected; default one half, or a tenth of the range.
#' @param errors Of [dp_fdadp()], with a formula: `"normal"` or `"skewed"`, as costs and lengths of stay are; fits explain less of these.
#' @param mostly_zero Of [dp_fdadp()], with a formula: names of numbers that are zero for most people, as pack-years or costs are.
#' @param person_rows,max_rows Of [dp_fdadp()], with a formula: how the rows of a person count. Of `"sum"` persons of one to `max_rows` rows (at most
#'   8) are simulated, else persons of one row.
#' @param explained Of [dp_fdadp()], with a formula: the share of the variance of the response that all terms explain in truth, as an earlier
#'   study found it; default about 0.6. Less is harder to find.
#' @param effects Of [dp_fdadp()], with a formula, one of:
#'   * `"rough"`, as fits are prepared for;
#'   * `"smooth"`, nearly a level and a slope along t and a slow wave or two along s, as pictures of an earlier study
#'     show. These are easier to find.
#'   * `"level"`, where hardly anything but the level of a curve has an effect.
#'
#'   The default is drawn between the first two, anew for each cohort. So are values that `explained`, `numbers` and
#'   `importances` leave open.
#' @param numbers Of [dp_fdadp()], with a formula: means and standard deviations of numbers, `list(age = c(55, 14))`, as a published table has them.
#' @param importances Of [dp_fdadp()], with a formula: how much of the explained variance each term has by itself, as an
#'   earlier study found it. Give all terms, by the names that a plan prints, as `c("ff(X)" = 0.7, age = 0.3)`; their
#'   ratios count.
#' @param curves Of [dp_fdadp()], with a formula: public curves of at least 20 people, as of an earlier study, by
#'   column. They are given as `list(X = )`, a matrix with a row for each. Default: drawn from the prior, which has
#'   rougher ones than most.
#' @param x A plan.
#' @param ... Not used.
#' @return A list of class `fdadp_plan`. Without a formula it has:
#'   * `share` (of the explainable variance) and `coverage`;
#'   * `rmspe_ratio` and `width_ratio` (of prediction errors and intervals to those without privacy);
#'   * `smallest_n` and `smallest_epsilon` for the wanted accuracy;
#'   * data frames `by_n` and `by_epsilon`, and the whole as `text`.
#'
#'   With a formula it has:
#'   * `share` with its standard error `error`;
#'   * `worst_share` and `best_share` (what the worst tenth of the simulated cohorts has at most, and the best at
#'     least);
#'   * `untold` (what was drawn, as it was not said);
#'   * `left_out` (terms that the budget cannot carry);
#'   * `cohorts`, `explained`, `coverage`, `importances`, `plan` and `text`.
#' @examples
#' if (fdadp_available()) {
#'   plan <- plan_dp(n = 1000, epsilon = 1, delta = 1e-6, accuracy = 0.9)
#'   plan$smallest_n
#'   plan
#'   plan_dp(1000, 1, 1e-6, formula = died ~ lf(X) + age, family = "binomial",
#'           bounds = list(X = c(-4, 4), age = c(18, 90), died = 0:1))
#' }
#' @export
plan_dp <- function(n = NULL, epsilon = 1, delta = NULL, accuracy = NULL, adjacency = NULL, formula = NULL, bounds = NULL,
                    points = NULL, family = "gaussian", rate = NULL, errors = "normal", mostly_zero = NULL,
                    person_rows = NULL, max_rows = NULL, explained = NULL, effects = NULL, numbers = NULL, importances = NULL,
                    curves = NULL) {
  no_na(
    n = n, epsilon = epsilon, delta = delta, accuracy = accuracy, adjacency = adjacency, rate = rate, explained = explained, person_rows = person_rows, max_rows = max_rows,
    effects = effects, numbers = unlist(numbers), importances = unlist(importances)
  )
  if (!is.null(formula)) {
    if (!inherits(formula, "formula") || length(formula) != 3) {
      input_error("formula must be of the form Y ~ terms, got ", paste(deparse(formula), collapse = " "))
    }
    if (!is.list(bounds) || is.null(names(bounds))) input_error("bounds must be a list by column, list(X = c(low, high)), got ", class(bounds)[1])
    plan <- call_python(
      "plan_of_formula",
      formula = paste(text_of(formula[[2]]), "~", as_python(formula[[3]])), n = as_whole(n), epsilon = epsilon, delta = delta, accuracy = accuracy,
      adjacency = adjacency, bounds = lapply(bounds, as_bounds), points = lapply(points, as_whole), family = family_name(family), rate = rate,
      errors = errors, mostly_zero = as.list(mostly_zero), explained = explained, person_rows = person_rows, max_rows = as_whole(max_rows),
      effects = effects, numbers = lapply(numbers, as.list), importances = as.list(importances), curves = lapply(curves, as.matrix)
    )
    plan$importances <- unlist(plan$importances)
    for (names in c("left_out", "untold")) plan[[names]] <- as.character(unlist(plan[[names]]))
    return(structure(plan, class = "fdadp_plan"))
  }
  only <- list(bounds, points, rate, mostly_zero, explained, person_rows, max_rows, numbers, importances, curves, effects)
  if (!all(vapply(only, is.null, NA)) || family_name(family) != "gaussian" || !identical(errors, "normal")) {
    input_error(
      "bounds, points, family, rate, errors, mostly_zero, explained, effects, numbers, importances, curves, person_rows and max_rows must be left out without a formula"
    )
  }
  plan <- call_python("plan", n = as_whole(n), epsilon = epsilon, delta = delta, accuracy = accuracy, adjacency = adjacency)
  for (curve in c("by_n", "by_epsilon")) plan[[curve]] <- as.data.frame(lapply(plan[[curve]], unlist))
  structure(plan, class = "fdadp_plan")
}

#' @rdname plan_dp
#' @export
print.fdadp_plan <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' What private components, mixed models, survival and hazards will be worth
#'
#' Each forecast is made before any data are touched:
#' * `plan_levels()`: what private components of persons and of their curves will hold;
#' * `plan_mixed()`: how accurate the effects of a private mixed model will be;
#' * `plan_survival()`: how wide the limits of a private survival curve will be;
#' * `plan_hazards()`: what a private regression of times to an event will explain.
#'
#' All but survival simulate and fit cohorts, which takes up to half a minute.
#'
#' @param n Number of people.
#' @param max_rows Curves of a person that count at most.
#' @param within,person_rows As of [dp_fdadp()]: names of columns that vary within persons, and how their rows count.
#' @param explained Share of the variance of curves that effects explain; default drawn about a tenth.
#' @param epsilon,delta The budget; `delta` left out or 0 means pure epsilon.
#' @param rows How many curves each person has, or shares of people with 1, 2, ... curves; default 1 to `max_rows`, equally often.
#' @param npc Components of each level whose captured variance is forecast.
#' @param icc Share of the smooth variance that is between people.
#' @param white Share of the variance of single points that is noise.
#' @param edges,times Public: where time begins, and the ends of intervals.
#' @param survival Expected share of people without the event at the last time, or the shares at all ends.
#' @param lost Share of people who are censored before the last time, or the shares before all ends.
#' @param classes Classes that are told apart, equally large.
#' @param level Of the limits.
#' @param formula,bounds,points As of [plan_dp()], of a formula such as `Surv(months, died) ~ lf(X) + age`, or
#'   `Y ~ age + re(id, covariance = "free")`.
#' @param spread Standard deviation over people of the logarithm of hazards, or of odds.
#' @param effects,numbers,importances As of [plan_dp()]; what is not said is drawn anew for each cohort. Curves of persons are as rough
#'   as the effects.
#' @param curves As of [plan_dp()].
#' @param family,baseline `"binomial"` or `"poisson"`; `"auto"`, `"factor"`, `"smooth"` or `"linear"`.
#' @param adjacency As of [plan_dp()].
#' @return A list of class `fdadp_plan` with the `text` of the forecast. It also has:
#'   * `plan_levels()`: `captured`, a data frame of `level`, `mean`, `worst` and `best` (what the worst tenth of cohorts
#'     has at most, and the best at least) and `error`; `icc_width`.
#'   * `plan_mixed()`: `share`, `worst_share`, `best_share`, `standard_errors` (of terms, over the standard deviation of
#'     curves), `icc_width`, `cohorts`, `untold`.
#'   * `plan_survival()`: `widths`, a data frame of `time`, `survival`, `width`, `exact_width` (without privacy) and, of
#'     two classes, `difference_width`; `coverage`.
#'   * `plan_hazards()`: `share`, `worst_share`, `best_share`, `cohorts`, `untold`, `error`, `mean_error`,
#'     `survival_error`.
#'
#'   Widths and errors are means over cohorts; the text has their tenths.
#' @examples
#' if (fdadp_available()) {
#'   plan_survival(2000, epsilon = 1, delta = 1e-6, edges = 0:12, survival = 0.3)$widths
#' }
#' @export
plan_levels <- function(n, max_rows, epsilon = 1, delta = NULL, rows = NULL, npc = 4, icc = 0.5, white = 0.2, adjacency = NULL) {
  no_na(n = n, max_rows = max_rows, epsilon = epsilon, delta = delta, rows = rows, npc = npc, icc = icc, white = white, adjacency = adjacency)
  plan <- call_python(
    "plan_levels",
    n = as_whole(n), max_rows = as_whole(max_rows), epsilon = epsilon, delta = delta, rows = if (length(rows) == 1) as_whole(rows) else rows,
    n_components = as_whole(npc), icc = icc, white = white, adjacency = adjacency
  )
  plan$captured <- as.data.frame(lapply(plan$captured, unlist))
  structure(plan, class = "fdadp_plan")
}

#' @rdname plan_levels
#' @export
plan_mixed <- function(formula, n, epsilon = 1, delta = NULL, bounds, max_rows, within = NULL, points = NULL, rows = NULL, icc = 0.5, white = 0.2,
                       explained = NULL, effects = NULL, numbers = NULL, importances = NULL, person_rows = NULL, adjacency = NULL) {
  no_na(
    n = n, epsilon = epsilon, delta = delta, max_rows = max_rows, within = within, rows = rows, icc = icc, white = white, explained = explained,
    effects = effects, numbers = unlist(numbers), importances = unlist(importances), person_rows = person_rows, adjacency = adjacency
  )
  if (!inherits(formula, "formula") || length(formula) != 3) {
    input_error("formula must be of the form Y ~ terms + re(id, covariance = \"free\"), got ", paste(deparse(formula), collapse = " "))
  }
  if (!is.list(bounds) || is.null(names(bounds))) input_error("bounds must be a list by column, list(age = c(low, high)), got ", class(bounds)[1])
  plan <- call_python(
    "plan_mixed",
    formula = paste(text_of(formula[[2]]), "~", as_python(formula[[3]])), n = as_whole(n), epsilon = epsilon, delta = delta,
    bounds = lapply(bounds, as_bounds), max_rows = as_whole(max_rows), within = as.list(within), points = lapply(points, as_whole),
    rows = if (length(rows) == 1) as_whole(rows) else rows, icc = icc, white = white, explained = explained, effects = effects,
    numbers = lapply(numbers, as.list), importances = as.list(importances), person_rows = person_rows, adjacency = adjacency
  )
  plan$standard_errors <- unlist(plan$standard_errors)
  plan$untold <- as.character(unlist(plan$untold))
  structure(plan, class = "fdadp_plan")
}

#' @rdname plan_levels
#' @export
plan_survival <- function(n, epsilon = 1, delta = NULL, edges, survival = 0.5, lost = 0.2, classes = 1, level = 0.95, adjacency = NULL) {
  no_na(n = n, epsilon = epsilon, delta = delta, edges = edges, survival = survival, lost = lost, classes = classes, level = level, adjacency = adjacency)
  plan <- call_python(
    "plan_survival",
    n = as_whole(n), epsilon = epsilon, delta = delta, edges = as.numeric(edges), survival = survival, lost = lost, classes = as_whole(classes),
    level = level, adjacency = adjacency
  )
  plan$widths <- as.data.frame(lapply(plan$widths, unlist))
  structure(plan, class = "fdadp_plan")
}

#' @rdname plan_levels
#' @export
plan_hazards <- function(formula, n, epsilon = 1, delta = NULL, times, bounds, points = NULL, survival = 0.5, lost = 0.2, spread = 0.8,
                         effects = NULL, numbers = NULL, importances = NULL, curves = NULL, family = "binomial", baseline = "auto", adjacency = NULL) {
  no_na(
    n = n, epsilon = epsilon, delta = delta, times = times, survival = survival, lost = lost, spread = spread, adjacency = adjacency,
    effects = effects, numbers = unlist(numbers), importances = unlist(importances)
  )
  if (!inherits(formula, "formula") || length(formula) != 3) {
    input_error("formula must be of the form Surv(time, event) ~ terms, got ", paste(deparse(formula), collapse = " "))
  }
  if (!is.list(bounds) || is.null(names(bounds))) input_error("bounds must be a list by column, list(X = c(low, high)), got ", class(bounds)[1])
  plan <- call_python(
    "plan_hazards",
    formula = paste(text_of(formula[[2]]), "~", as_python(formula[[3]])), n = as_whole(n), epsilon = epsilon, delta = delta,
    times = as.numeric(times), bounds = lapply(bounds, as_bounds), points = lapply(points, as_whole), survival = survival, lost = lost,
    spread = spread, effects = effects, numbers = lapply(numbers, as.list), importances = as.list(importances),
    curves = lapply(curves, as.matrix), family = family_name(family), baseline = baseline, adjacency = adjacency
  )
  plan$untold <- as.character(unlist(plan$untold))
  structure(plan, class = "fdadp_plan")
}
