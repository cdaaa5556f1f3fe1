# R's side of a model of several terms: walk the formula, evaluate what it speaks of, and say it to Python in plain values.

# Calls that are terms; all else in a formula is a column.
specials <- c("ff", "sff", "ffpc", "lf", "af", "fpcr", "fosr", "concurrent", "s", "te", "re", "c", "linear")

# refund's names of arguments, and of rules of quadrature, that ours differ from.
refund_rules <- c(simpson = "simpson_legacy", trapezoidal = "trapezoid", riemann = "riemann")

# What the formula says: list(response, terms, columns, expressions, intercept, offset), and terms of the variance.
read_model <- function(formula, data, grids, yind, ydata = NULL, rows = NULL, variance = NULL) {
  if (!inherits(formula, "formula") || length(formula) != 3) {
    input_error("formula must be of the form Y ~ terms, got ", paste(deparse(formula), collapse = " "))
  }
  if (is.call(formula[[2]]) && text_of(formula[[2]][[1]]) %in% c("Surv", "survival::Surv")) {
    input_error("formula must have curves or numbers at its left: survival_regression() is for Surv(time, event)")
  }
  frame <- environment(formula)
  walked <- tryCatch(
    stats::terms.formula(formula, specials = specials, keep.order = TRUE, data = if (is.data.frame(data)) data),
    error = function(e) input_error("formula cannot be read: ", conditionMessage(e))
  )
  seen <- new.env()
  seen$columns <- seen$expressions <- list()
  seen$data <- data
  seen$frame <- frame
  seen$grids <- grids
  seen$rows <- rows
  name <- paste(deparse(formula[[2]]), collapse = " ")
  rows_of_frame(data, all.vars(formula))
  seen$scalar <- is.null(ydata) && !looks_like_curves(value_of(formula[[2]], seen))
  if (is.null(ydata)) numbers_as_text(formula[[2]], seen)
  response <- if (is.null(ydata)) read_column(formula[[2]], name, seen, grid = yind, response = TRUE)
  variables <- as.list(attr(walked, "variables"))[-1]
  factors <- attr(walked, "factors")
  labels <- attr(walked, "term.labels")
  told <- lapply(seq_along(labels), function(j) read_term(variables[factors[, j] > 0], labels, seen))
  variance <- if (!is.null(variance)) terms_of_variance(variance, seen)
  offsets <- lapply(variables[attr(walked, "offset")], `[[`, 2)
  list(
    spec = list(
      terms = told, columns = c(seen$columns, if (is.null(ydata)) stats::setNames(list(response), name)), response = name, scalar = seen$scalar,
      long = if (!is.null(ydata)) as_long(ydata)
    ),
    variance = variance, expressions = seen$expressions, intercept = attr(walked, "intercept") == 1,
    offset = if (length(offsets)) Reduce(`+`, lapply(offsets, value_of, seen)), offsets = vapply(offsets, text_of, ""),
    offset_call = as.call(c(quote(list), offsets)), rows = row_names_of(if (is.data.frame(data)) only(data, rows), c(list(response), seen$columns))
  )
}

# Terms of the variance of numbers, whose columns are read as those of the formula; of curves one of some words.
terms_of_variance <- function(variance, seen) {
  if (!seen$scalar) {
    return(one_of(variance, c("auto", "t", "model", "constant"), "variance"))
  }
  if (!inherits(variance, "formula") || length(variance) != 2) {
    input_error("variance must be a formula without a response, as ~ s(x), where the response is a number, got ", paste(format(variance), collapse = " "))
  }
  walked <- stats::terms.formula(variance, specials = specials, keep.order = TRUE)
  single <- attr(walked, "order") == 1
  if (!all(single) || !length(single) || attr(walked, "intercept") == 0 || length(attr(walked, "offset"))) {
    input_error("variance must have terms of one variable each, and its constant, got ", paste(format(variance), collapse = " "))
  }
  lapply(as.list(attr(walked, "variables"))[-1], read_variable, seen)
}

# refund's ydata: a row for each observation, .obs the number of the curve's row in the data.
as_long <- function(ydata) {
  names <- c(".obs", ".index", ".value")
  if (!is.data.frame(ydata) || !all(names %in% names(ydata))) input_error("ydata must be a data frame with the columns .obs, .index and .value")
  columns <- lapply(ydata[names], function(v) if (is.numeric(v)) array(as.double(v), length(v)) else input_error("ydata must hold numbers, got ", class(v)[1]))
  stats::setNames(columns, c("row", "t", "value"))
}

# One term of the formula: of one variable, or of two that are multiplied.
read_term <- function(variables, labels, seen) {
  if (length(variables) == 1) {
    return(read_variable(variables[[1]], seen))
  }
  if (length(variables) > 2) {
    input_error("interactions must be of two variables, got ", paste(vapply(variables, text_of, ""), collapse = ":"))
  }
  special <- vapply(variables, is_special, TRUE)
  if (all(special)) input_error("interactions must be with a column, got ", paste(vapply(variables, text_of, ""), collapse = ":"))
  if (!any(special)) {
    values <- lapply(variables, value_of, seen)
    is_curve <- vapply(values, looks_like_curves, TRUE)
    is_label <- vapply(values, function(v) is.factor(v) || is.character(v), TRUE)
    if (all(is_label) || !any(is_label | is_curve)) { # one column: all pairs of levels, or products
      call <- as.call(c(if (all(is_label)) quote(interaction) else quote(`*`), variables))
      return(read_variable(call, seen))
    }
    by <- if (any(is_curve)) which(!is_curve)[1] else which(is_label)[1]
  } else {
    by <- which(!special)
  }
  by_name <- text_of(variables[[by]])
  remember(variables[[by]], by_name, seen)
  term <- read_variable(variables[[3 - by]], seen)
  labelled <- seen$columns[[by_name]]$kind == "labels"
  beside <- text_of(variables[[3 - by]]) %in% labels # then only differences from the first level are left
  settings <- if (labelled && beside) list(coding = "treatment") else empty()
  list(kind = "by", columns = list(by_name), settings = settings, term = term)
}

is_special <- function(call) is.call(call) && as.character(call[[1]])[1] %in% specials

text_of <- function(call) paste(deparse(call, width.cutoff = 500L), collapse = " ")

# An empty list with names: a dict in Python.
empty <- function() stats::setNames(list(), character(0))

# Bases of packages: several columns of numbers, which would be taken for a curve.
bases <- c("bs", "ns", "splines::bs", "splines::ns", "poly", "stats::poly")

read_variable <- function(call, seen) {
  if (is.call(call) && text_of(call[[1]]) %in% bases) {
    input_error("formula must say s(", paste(all.vars(call), collapse = ", "), ") for a smooth effect, got ", text_of(call))
  }
  if (is.call(call) && identical(call[[1]], quote(`|`)) && !is.logical(value_of_level(call, seen))) {
    input_error("formula must say re(id) for (1 | id), and re(id, slopes = week) for (week | id), got ", text_of(call))
  }
  if (!is_special(call)) {
    name <- text_of(call)
    numbers_as_text(call, seen)
    remember(call, name, seen)
    if (seen$scalar && seen$columns[[name]]$kind == "curves") {
      input_error(name, " is a curve: formula must say lf(", name, ") for its effect on a number (ff(", name, ") where the response is a curve)")
    }
    kind <- switch(seen$columns[[name]]$kind, curves = "concurrent", numbers = "linear", labels = "factor")
    return(list(kind = kind, columns = list(name), settings = empty()))
  }
  kind <- as.character(call[[1]])
  given <- as.list(call)[-1]
  named <- if (is.null(names(given))) rep(FALSE, length(given)) else nzchar(names(given))
  columns <- unname(given[!named])
  settings <- given[named]
  if (!length(columns)) input_error(text_of(call), " must name a column")
  if (kind == "c") {
    if (length(columns) != 1 || length(settings)) input_error("c() must hold one term, got ", text_of(call))
    return(list(kind = "c", columns = list(), settings = empty(), term = read_variable(columns[[1]], seen)))
  }
  if (kind %in% c("s", "te", "linear") && !identical(settings$bs, "re")) for (column in columns) numbers_as_text(column, seen)
  grid <- NULL
  for (other in intersect(c("xind", "argvals"), names(settings))) {
    grid <- eval(settings[[other]], seen$data, seen$frame)
    settings[[other]] <- NULL
  }
  if ("by" %in% names(settings)) {
    by <- settings$by
    settings$by <- text_of(by)
    remember(by, settings$by, seen)
    if (!kind %in% c("s", "te")) {
      inner <- as.call(c(call[[1]], columns, settings[names(settings) != "by"]))
      return(list(kind = "by", columns = list(settings$by), settings = empty(), term = read_variable(inner, seen)))
    }
  }
  kept <- settings$by
  slopes <- if (kind == "re") slopes_of(settings$slopes, seen)
  settings <- lapply(settings[!names(settings) %in% c("by", if (kind == "re") "slopes")], eval, seen$data, seen$frame)
  if ("integration" %in% names(settings)) {
    settings$rule <- refund_rules[[one_of(settings$integration, names(refund_rules), "integration")]]
    settings$integration <- NULL
  }
  names(settings)[names(settings) == "npc"] <- "n_components"
  if (kind == "s" && identical(settings$bs, "re")) { # refund: curves; the constant is c(s(g, bs = "re"))
    kind <- "re"
    settings$bs <- NULL
    if (is.null(settings$k) && !seen$scalar) settings$k <- 5
  }
  bad <- Filter(function(v) !(is.numeric(v) || is.character(v) || is.logical(v) || is.list(v) || is.null(v)), settings)
  if (length(bad)) input_error(names(bad)[1], " of ", text_of(call), " must be numbers or text, got ", class(bad[[1]])[1])
  names <- vapply(columns, text_of, "")
  for (i in seq_along(columns)) remember(columns[[i]], names[i], seen, if (i == 1) grid)
  settings <- lapply(settings, as_setting)
  if (!is.null(kept)) settings$by <- kept
  if (!is.null(slopes)) settings$slopes <- slopes
  list(kind = kind, columns = as.list(names), settings = if (length(settings)) settings else empty())
}

# What stands left of a bar: in (1 | id) no logical, as in a | b.
value_of_level <- function(call, seen) tryCatch(value_of(call[[2]], seen), error = function(e) NULL)

# re(id, slopes = week), or slopes = c(week, dose): names of columns.
slopes_of <- function(slopes, seen) {
  if (is.null(slopes)) {
    return(NULL)
  }
  several <- is.call(slopes) && identical(slopes[[1]], quote(c))
  calls <- if (several) as.list(slopes)[-1] else list(slopes)
  calls <- lapply(calls, function(call) if (is.character(call)) as.name(call) else call)
  for (call in calls) remember(call, text_of(call), seen)
  names <- vapply(calls, text_of, "")
  array(names, length(names))
}

as_setting <- function(value) {
  if (is.list(value)) {
    return(unname(lapply(value, as_setting)))
  }
  if (length(value) < 2) value else array(unname(value), length(value))
}

# C(x) is a factor, also of text, of which stats::C() makes none.
as_r <- function(call) {
  if (is.call(call) && identical(call[[1]], quote(C)) && length(call) == 2) call[[1]] <- quote(as.factor)
  call
}

value_of <- function(call, seen) {
  found <- tryCatch(eval(as_r(call), seen$data, seen$frame), error = function(e) {
    known <- if (is.list(seen$data) && length(names(seen$data))) paste0("; data has ", paste(names(seen$data), collapse = ", "))
    input_error(text_of(call), " in the formula cannot be evaluated: ", conditionMessage(e), known)
  })
  only(found, seen$rows)
}

# Read a column once; a second term on the same column takes it as it is.
remember <- function(call, name, seen, grid = NULL) {
  if (is.null(seen$columns[[name]])) {
    seen$columns[[name]] <- read_column(call, name, seen, grid)
    seen$expressions[[name]] <- text_of(call)
  }
}

read_column <- function(call, name, seen, grid = NULL, response = FALSE) {
  if (is.null(grid)) grid <- seen$grids[[name]]
  value <- value_of(call, seen)
  column <- as_column(value, name, grid, response)
  say_even(column, name)
  column$rows <- labels_of(call, value, seen$data, seen$rows)
  column
}

# Text of which most entries are numbers is no factor, unless C() or factor() say so: an odd entry, or decimal commas, made R read a column of numbers so.
numbers_as_text <- function(call, seen) {
  if (!is.name(call)) {
    return(invisible())
  }
  value <- value_of(call, seen)
  if (!is.character(value) || is.matrix(value)) {
    return(invisible())
  }
  entries <- trimws(value)
  known <- !is.na(entries) & nzchar(entries)
  number <- known & !is.na(suppressWarnings(as.double(sub(",", ".", entries, fixed = TRUE))))
  odd <- known & !number
  mark <- number & grepl("[.,]", entries)
  if (sum(number) <= sum(known) / 2 || !any(odd | mark)) {
    return(invisible())
  }
  at <- which(if (any(odd)) odd else mark)[1]
  input_error(
    text_of(call), " is text, but ", sum(number), " of ", sum(known), " entries are numbers ('", value[at], "' in row ", at,
    "): read.csv2() for decimal commas, as.numeric(), or C(", text_of(call), ") if it is a factor"
  )
}

# Names of the rows of what was evaluated: those of the data where all of it is from there, else its own.
labels_of <- function(call, value, data, rows = NULL) {
  used <- all.vars(call)
  if (is.data.frame(data) && length(used) && all(used %in% names(data))) {
    return(if (.row_names_info(data) > 0) row.names(only(data, rows)))
  }
  if (is.data.frame(value)) {
    return(if (is.null(rows) && .row_names_info(value) > 0) row.names(value))
  }
  if (is.matrix(value)) rownames(value) else if (is.atomic(value)) names(value)
}

# Columns of a data frame are one table; a matrix whose row names say that its rows are others' is refused. Row names that count rows
# (as after subset()) only contradict the same names in another order.
rows_of_frame <- function(data, used) {
  if (!is.data.frame(data)) {
    return(invisible())
  }
  own <- Filter(Negate(is.null), lapply(unclass(data)[intersect(used, names(data))], function(v) if (is.matrix(v)) rownames(v) else if (is.atomic(v)) names(v)))
  frame <- row.names(data)
  text <- is.character(attr(data, "row.names"))
  automatic <- .row_names_info(data) < 0
  for (name in names(own)) {
    told <- list(data = frame, own[[name]])
    if (automatic && !setequal(frame, own[[name]])) told <- own[c(1, match(name, names(own)))] # two columns beside counted rows
    others <- if (text && identical(told[[1]], frame)) !anyDuplicated(own[[name]]) else setequal(told[[1]], told[[2]])
    if (others && !identical(told[[1]], told[[2]])) {
      names(told)[2] <- name
      call_python("compare_names", labels = lapply(told, function(one) array(one, length(one))), frame = TRUE)
    }
  }
}

# Rows of all columns joined by their names, where all have some that differ; records are the rows of the response.
# With `every`, each record must be in all of them.
joined <- function(spec, beside, every = FALSE) {
  known <- c(lapply(spec$columns, `[[`, "rows"), lapply(beside, `[[`, "rows"))
  known <- known[c(spec$response, setdiff(names(known), spec$response))]
  named <- Filter(Negate(is.null), known)
  spec$columns <- lapply(spec$columns, function(column) column[names(column) != "rows"])
  own <- lapply(beside, `[[`, "value")
  if (length(named) < 2 || all(vapply(named, identical, TRUE, named[[1]]))) {
    return(list(spec = spec, beside = own))
  }
  names <- lapply(named, function(one) array(as.character(one), length(one)))
  if (length(named) < length(known)) {
    call_python("compare_names", labels = names)
    return(list(spec = spec, beside = own))
  }
  found <- call_python("joined_names", labels = names, primary = spec$response, every = every)
  if (!every) message(found$said)
  at <- lapply(found$rows, function(rows) as.integer(rows) + 1L)
  for (name in names(spec$columns)) spec$columns[[name]] <- rows_of_column(spec$columns[[name]], at[[name]])
  list(spec = spec, beside = Map(function(value, name) rows_of(value, at[[name]]), own, names(own)), rows = named[[1]][at[[spec$response]]])
}

rows_of <- function(value, at) {
  found <- if (is.matrix(value)) value[at, , drop = FALSE] else value[at]
  if (is.matrix(value)) found else array(found, length(found))
}

rows_of_column <- function(column, at) {
  for (part in intersect(c("values", "text", "numbers", "missing"), names(column))) column[[part]] <- rows_of(column[[part]], at)
  column
}

looks_like_curves <- function(value) {
  inherits(value, c("fd", "tf")) || is.data.frame(value) || (is.matrix(value) && ncol(value) > 1)
}

# Names of rows: of a data frame that has some, else of the first column of curves that has.
row_names_of <- function(data, columns) {
  if (is.data.frame(data) && .row_names_info(data) > 0) {
    return(row.names(data))
  }
  for (column in columns) {
    if (column$kind == "curves" && !is.null(rownames(column$values))) {
      return(rownames(column$values))
    }
  }
}

# A column on its way to Python.
as_column <- function(value, name, grid = NULL, response = FALSE, levels = NULL) {
  if (looks_like_curves(value)) {
    if (is.null(grid)) grid <- attr(value, "grid")
    curves <- as_curves(if (inherits(value, "AsIs")) unclass(value) else value, grid, name)
    own <- c("labels", "backwards")
    return(c(list(kind = "curves", values = curves$values, grid = curves$grid), curves[intersect(own, names(curves))]))
  }
  if (is.matrix(value)) value <- c(value)
  many <- response && is.ordered(value) && nlevels(value) > 2 # of two, the first is failure
  if (response && !many && (is.factor(value) || is.character(value))) { # R's way: the first level is failure
    value <- as.factor(value)
    if (nlevels(value) != 2) input_error(name, " must have two levels, got ", nlevels(value))
    value <- as.integer(value) - 1
  }
  if (is.factor(value) || is.character(value)) {
    if (is.null(levels)) levels <- if (is.factor(value)) base::levels(value) else sort(unique(value))
    labels <- as.character(value)
    levels <- unique(c(levels, labels[!is.na(labels)])) # what is new is refused there, by name
    gone <- is.na(labels)
    labels[gone] <- ""
    found <- list(kind = "labels", values = array(labels, length(labels)), missing = array(gone, length(gone)), levels = as.list(levels))
    return(if (many) c(found, list(ordered = TRUE)) else found)
  }
  if (!is.numeric(value) && !is.logical(value)) {
    input_error(name, " must be numbers, labels or curves, got ", class(value)[1])
  }
  list(kind = "numbers", values = array(as.double(value), length(value)))
}

# What an expression of the formula is in new data; nothing is looked up beyond them.
value_in <- function(call, newdata) {
  absent <- setdiff(all.vars(call), names(newdata))
  if (length(absent)) {
    input_error("newdata must hold ", absent[1], ", of which the formula speaks, got ", paste(names(newdata), collapse = ", "))
  }
  eval(as_r(call), newdata, baseenv())
}

# Columns of new data, the offset, and the names of their rows, by which the columns of a list are joined.
# A model without covariates still must know how many rows there are.
new_rows <- function(newdata, calls, column, offsets = list()) {
  if (!is.list(newdata) || !length(newdata)) input_error("newdata must be a data frame or a list of columns, got ", class(newdata)[1])
  rows_of_frame(newdata, unlist(lapply(c(calls, offsets), all.vars)))
  if (!length(calls)) {
    first <- newdata[[1]]
    calls <- list(rows = quote(rows))
    newdata <- c(list(rows = stats::setNames(rep(0, NROW(first)), labels_of(quote(first), first, newdata))), newdata)
  }
  columns <- lapply(stats::setNames(nm = names(calls)), function(name) {
    value <- value_in(calls[[name]], newdata)
    c(column(value, name), list(rows = labels_of(calls[[name]], value, newdata)))
  })
  beside <- lapply(offsets, function(call) {
    value <- value_in(call, newdata)
    list(value = per_row(value, "offset"), rows = labels_of(call, value, newdata))
  })
  names(beside) <- sprintf("offset %d", seq_along(beside))
  found <- joined(list(columns = columns, response = names(columns)[1]), beside, every = TRUE)
  rows <- c(list(found$rows), lapply(columns, `[[`, "rows"), list(row_names_of(newdata, columns)))
  list(columns = found$spec$columns, offset = if (length(beside)) Reduce(`+`, found$beside), rows = unlist(Find(Negate(is.null), rows)))
}
