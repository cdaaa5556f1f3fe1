#' Regression on any terms with differential privacy
#'
#' The models of [fdadp()], released with an (epsilon, delta) guarantee of differential privacy for whole people that holds end to end, as
#' [dp_affr()]. The result holds no training row, no fitted value and no residual.
#'
#' Terms: `ff`, `sff`, `lf`, `af`, numbers, `s`, `te`, factors (`region`, `C(region)`, `factor(region)`) and their interactions. What a
#' column is follows from what is public: a matrix is curves, `bounds` that are two numbers make a column of numbers, other
#' `bounds` are the levels of a factor. Types of entries are not asked, for one person's entry could change them: what is no number, or no
#' public level, counts as missing.
#'
#' @inheritParams dp_affr
#' @param formula `Y ~ ff(X) + s(age) + region`, of columns of `data`; arguments of terms are numbers, text, `c()` of them, `TRUE` and `FALSE`.
#' @param data A data frame with matrix columns, or a list of columns. Rows of a data frame belong together as they stand. Two files: [merge()]
#'   first, then make the matrix. Where the data frame and a matrix in it both have row names that are text, rows are joined as those of a list.
#' @param bounds What is public of each column and of the response, by name: `c(low, high)` of curves and numbers, the levels of labels, as
#'   `list(X = c(-4, 4), age = c(18, 90), region = c("north", "south"), Y = c(-8, 8))`.
#' @param labels `"public"`: names of rows are public, and others in one of the columns are refused before the first
#'   read. By default they are private. Where all columns of a list have some, and no `groups` are given, a name is a
#'   person's id, and rows are joined by it. So are those of a matrix with row names and the data frame that holds it.
#'   Else rows belong together by their position, as the ledger says.
#' @param groups The person of each row, where people have several: a column of `data`, as `id` or `"id"`, or a vector; rows whose person is `NA` are not used.
#' @param grids Grids of matrices by column, `list(X = s)`; default: their attribute `"grid"`, their column names, or even on \[0, 1\].
#' @param yind Grid of the response, likewise.
#' @param family `"gaussian"`; other families where the response is a number.
#' @param missing How gaps of curves are filled, each within its row: `"linear"` or `"smooth"`. A number that is missing is its released mean; `"indicator"`
#'   adds a term that says where. By column: `list(X = "linear", age = "indicator")`.
#' @param person_rows With groups, what the fit is about: `"mean"`, the default, counts each person once, by the mean of its rows; `"sum"` counts each
#'   row once, as events and hazards want.
#' @param max_rows With `person_rows = "sum"`, or `re(id, covariance = "free")`: rows of a person that count at most, a public number.
#' @param within With `re(id, covariance = "free")`: names of columns that vary within persons. Their effects come from rows of one person, those of others
#'   from means of persons, where each person counts once; `person_rows = "exchangeable"` weighs all rows as generalised least squares would.
#' @param object,x A fit of `dp_fdadp()`.
#' @param newdata A data frame or list with the columns that the formula names.
#' @param se.fit Also give pointwise standard errors, which include the noise?
#' @param interval `"prediction"`: also give pointwise prediction intervals for new responses.
#' @param level Nominal coverage.
#' @param t Where to predict, within the domain of the response; default its grid.
#' @param term,parm Name of a term, such as `"ff(X)"`; of `confint()` names of terms, default all.
#' @param nsim Number of rows to draw.
#' @param ... Not used.
#'
#' @return An object of class `dp_fdadp`, plain R data: `term.names`, `importances`, `notes`, `plan`, `ledger`,
#'   `sigma2`, `r.sq`, `t`. [ledger()] tells what was released. Its methods return:
#'   * `predict()`: means of new rows, with `se.fit` or `interval` a list;
#'   * `coef()`: a coefficient function with its band;
#'   * `confint()`: a list of what `coef()` gives;
#'   * `summary()`: the tables;
#'   * `simulate()`: a list of columns of a synthetic cohort, drawn from the releases at no further cost;
#'   * `nobs()`: the declared or released number of people.
#'
#'   What needs training rows, such as `deviance()` or `logLik()`, is an error.
#' @seealso [fdadp()] without privacy, [plan_dp()]
#' @examples
#' if (fdadp_available()) {
#'   people <- simulate_affr(n = 1000, n_points = 21)
#'   people$age <- rep(c(30, 60), 500)
#'   fit <- dp_fdadp(Y ~ sff(X) + age, data = people, epsilon = 1, delta = 1e-6, n = 1000,
#'                   bounds = list(X = c(-4, 4), Y = c(-8, 8), age = c(18, 90)))
#'   print(fit)
#'   dim(predict(fit, list(X = people$X[1:3, ], age = people$age[1:3])))
#' }
#' @export
dp_fdadp <- function(formula, data, epsilon, delta = NULL, bounds = NULL, n = NULL, groups = NULL, grids = list(), yind = NULL,
                     family = "gaussian", adjacency = NULL, unit = NULL, labels = NULL, seed = NULL, allow_useless = FALSE,
                     missing = "linear", study = NULL, purpose = NULL, person_rows = NULL, max_rows = NULL, within = NULL) {
  if (missing(epsilon)) privacy_error("epsilon must be a number above 0, got nothing")
  groups <- if (is.name(substitute(groups)) && text_of(substitute(groups)) %in% names(data)) data[[text_of(substitute(groups))]] else column_of(groups, data)
  if (!inherits(formula, "formula") || length(formula) != 3) {
    input_error("formula must be of the form Y ~ terms, got ", paste(deparse(formula), collapse = " "))
  }
  if (!is.list(data)) input_error("data must be a data frame or a list of columns, got ", class(data)[1])
  if (is.null(bounds) && !is.null(study)) bounds <- list(x = NULL)[0]
  if (!is.list(bounds) || is.null(names(bounds))) privacy_error("bounds must be a list by column, list(X = c(low, high)), got ", class(bounds)[1])
  no_na(epsilon = epsilon, delta = delta, n = n, adjacency = adjacency, unit = unit, labels = labels, seed = seed, allow_useless = allow_useless, study = study, purpose = purpose, person_rows = person_rows, max_rows = max_rows, within = within)
  for (name in names(bounds)) no_na(bounds = bounds[[name]])
  response <- text_of(formula[[2]])
  used <- c(all.vars(formula[[3]]), response)
  if ("." %in% used) input_error("formula must name its columns; '.' stands for none")
  columns <- lapply(stats::setNames(nm = used), function(name) private_column(data, name, if (name == response) yind else grids[[name]]))
  if (identical(labels, "public")) rows_of_frame(data, used)
  table <- is.data.frame(data) && (!is.character(attr(data, "row.names")) || !is.null(groups) || identical(unit, "row"))
  if (!table) { # a list, and a data frame with names of its rows, may hold matrices with names of theirs, by which the kernel joins
    rows <- lapply(stats::setNames(nm = used), function(name) labels_of(quote(value), data[[name]], NULL))
    if (is.data.frame(data)) rows <- if (all(vapply(rows, is.null, TRUE))) list(NULL) else lapply(rows, function(own) if (is.null(own)) row.names(data) else own)
    if (!any(vapply(rows, is.null, TRUE))) columns <- Map(function(column, own) c(column, list(rows = array(as.character(own), length(own)))), columns, rows)
  }
  text <- paste(response, "~", as_python(formula[[3]]))
  privacy <- privacy_of(list(
    epsilon = epsilon, delta = delta, n = n, adjacency = adjacency, unit = unit, labels = labels, seed = seed, study = study, purpose = purpose
  ))
  spec <- list(
    formula = text, columns = columns, scalar = columns[[response]]$kind != "curves", family = family_name(family), allow_useless = isTRUE(allow_useless),
    bounds = lapply(bounds, as_bounds), missing = treatments(missing, c("linear", "smooth", "indicator")), person_rows = person_rows, max_rows = as_whole(max_rows),
    within = as.list(as.character(within))
  )
  path <- tempfile(fileext = ".npz")
  on.exit(unlink(path))
  fit <- call_python("fit_private_terms", spec = spec, privacy = privacy, groups = as_groups(groups), path = path)
  fit$ledger <- as_ledger(fit$ledger)
  for (name in c("term.names", "notes")) fit[[name]] <- as.character(unlist(fit[[name]]))
  fit$importances <- unlist(fit$importances)
  if (!is.null(fit$t)) fit$t <- as.double(fit$t)
  structure(
    c(fit, list(
      formula = plain_formula(formula), columns = setdiff(without_persons(formula[[3]]), response), scalar = spec$scalar, family = spec$family, epsilon = epsilon, delta = delta,
      file = readBin(path, "raw", file.size(path))
    )),
    class = "dp_fdadp"
  )
}

# Persons by the name of their column, `groups = "id"`, or as they are.
column_of <- function(groups, data) {
  if (!is.character(groups) || length(groups) != 1 || !is.list(data)) {
    return(groups)
  }
  if (!groups %in% names(data)) input_error("groups must be a column of data, or the person of each row, got \"", groups, "\"; data has ", paste(names(data), collapse = ", "))
  data[[groups]]
}

# Columns that predictions need: not those of persons whose curves are random, which are never released.
without_persons <- function(call) {
  if (!is.call(call)) return(all.vars(call))
  if (identical(call[[1]], as.name("re")) && "covariance" %in% names(call)) return(character())
  unique(unlist(lapply(as.list(call)[-1], without_persons)))
}

# A column as it is: its shape says whether it is curves; nothing of its entries is asked.
private_column <- function(data, name, grid = NULL) {
  value <- data[[name]]
  if (is.null(value)) input_error("data must have the column ", name, ", got ", paste(names(data), collapse = ", "))
  if (looks_like_curves(value)) {
    if (is.null(grid)) grid <- attr(value, "grid")
    curves <- as_curves(if (inherits(value, "AsIs")) unclass(value) else value, grid, name, private = TRUE)
    return(list(kind = "curves", values = curves$values, grid = curves$grid))
  }
  if (is.matrix(value)) value <- value[, 1]
  gone <- is.na(value)
  text <- as.character(value)
  text[gone] <- ""
  exact <- if (is.numeric(value)) as.double(value) else rep(NA_real_, length(value))
  list(kind = "entries", text = array(text, length(text)), numbers = array(exact, length(exact)), numeric = is.numeric(value), missing = array(gone, length(gone)))
}

# Ranges as numbers, levels as text or numbers.
as_bounds <- function(own) {
  if (inherits(own, c("Date", "POSIXt", "difftime"))) {
    input_error("bounds must be numbers or levels, got ", class(own)[1], ": make the column and its bounds numbers, as by as.numeric()")
  }
  if (is.numeric(own)) return(array(as.double(own), length(own)))
  ends <- if (is.character(own) && length(own) == 2) suppressWarnings(as.numeric(own))
  if (length(ends) && all(is.finite(ends)) && diff(ends) != 1) {
    input_error("bounds must be numbers, c(", paste(ends, collapse = ", "), "), for a range, or a factor for two labels, got ", text_of(own))
  }
  as.list(as.character(own))
}

# The right side of a formula as Python's parser of formulas reads it.
as_python <- function(call) {
  if (is.name(call)) {
    name <- as.character(call)
    return(if (grepl("^[A-Za-z_][A-Za-z0-9_]*$", name)) name else paste0("`", name, "`"))
  }
  if (!is.call(call)) {
    if (is.logical(call)) return(if (call) "True" else "False")
    return(if (is.character(call)) deparse(call) else format(call, digits = 15))
  }
  kind <- as.character(call[[1]])[1]
  inner <- vapply(as.list(call)[-1], as_python, "")
  if (kind %in% c("+", "-", "*", ":", "/", "^")) {
    return(if (length(inner) == 1) paste0(kind, inner) else paste(inner, collapse = paste0(" ", kind, " ")))
  }
  if (kind == "(") return(paste0("(", inner, ")"))
  if (kind == "I") inner <- gsub("^", "**", inner, fixed = TRUE) # within I() it is a power
  if (kind %in% c("factor", "as.factor")) kind <- "C"
  named <- names(inner)
  if (is.null(named)) named <- rep("", length(inner))
  plain <- kind == "c" && length(inner) > 1 # numbers, not refund's c()
  inner <- ifelse(nzchar(named), paste0(named, "=", inner), inner)
  paste0(if (plain) "" else kind, "(", paste(inner, collapse = ", "), ")")
}

call_on_private <- function(fit, .name, ...) {
  path <- tempfile(fileext = ".npz")
  on.exit(unlink(path))
  writeBin(fit$file, path)
  call_python(.name, path = path, scalar = fit$scalar, ...)
}

#' @rdname dp_fdadp
#' @export
predict.dp_fdadp <- function(object, newdata, se.fit = FALSE, interval = c("none", "prediction"), level = 0.95, t = NULL, grids = list(), ...) {
  no_more(...)
  no_na(t = t, se.fit = se.fit, level = level)
  if (missing(newdata)) privacy_error("newdata must be given: a private fit keeps no training rows")
  interval <- one_of(interval, c("none", "prediction"), "interval")
  new <- new_columns(object, newdata, grids)
  found <- call_on_private(object, "predict_private_terms",
    columns = new$columns, t = as_vector(t, "t"), se = isTRUE(se.fit), level = if (interval == "prediction") level
  )
  found <- lapply(found, shaped, object, rows = new$rows)
  if (length(found) == 1) found$fit else found
}

#' @rdname dp_fdadp
#' @export
coef.dp_fdadp <- function(object, term, level = 0.95, ...) {
  no_more(...)
  if (missing(term)) input_error("term must be one of ", paste(object$term.names, collapse = ", "))
  as.data.frame(lapply(call_on_private(object, "coefficient_of_private", term = term, level = level), unlist), check.names = FALSE)
}

#' @rdname dp_fdadp
#' @export
summary.dp_fdadp <- function(object, ...) {
  no_more(...)
  structure(list(text = call_on_private(object, "summary_of_private")$text), class = "summary.dp_fdadp")
}

#' @export
print.summary.dp_fdadp <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @rdname dp_fdadp
#' @export
print.dp_fdadp <- function(x, ...) {
  cat("Private regression: ", text_of(x$formula), "\n", x$ledger$headline, "\n", sep = "")
  cat(sprintf("R-squared %.3f by its releases; share of each term:\n", x$r.sq))
  print(round(x$importances, 3))
  if (length(x$notes)) cat(paste0("* ", x$notes), sep = "\n")
  invisible(x)
}

#' @rdname dp_fdadp
#' @importFrom stats simulate
#' @export
simulate.dp_fdadp <- function(object, nsim = 1000, seed = NULL, ...) {
  no_more(...)
  found <- call_on_private(object, "sample_of_private", n = as_whole(nsim), seed = as_whole(seed))
  lapply(found, function(column) if (is.list(column)) unlist(column) else column)
}

#' @export
fitted.dp_fdadp <- function(object, ...) privacy_error("fitted values of the training rows are not kept by a private fit: they would not be private")

#' @export
residuals.dp_fdadp <- function(object, ...) privacy_error("residuals of the training rows are not kept by a private fit: they would not be private")
