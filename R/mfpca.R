#' Components of persons and of their curves
#'
#' Curves that come several a person: the variation between persons and that between the rows of one person, each with components of its
#' own. `method = "face"` is refund's `mfpca.face()`. Rows may be in any order, persons may have different numbers of rows. **Not
#' private**, unless `privacy` is given: then both levels are released with one clipped contribution a person, and no scores.
#'
#' @param Y Curves, in any form that [affr()] takes; `NA` with `method = "reml"`.
#' @param id The person of each row, as numbers or labels. Where `id` has names and `Y` has names of rows, they are
#'   joined by these; with `privacy` rows belong together by position.
#' @param argvals Grid of the curves; default even on \[0, 1\].
#' @param npc Number of components, or in (0, 1\] the share of the level's variance that they must explain; two of these for persons and rows, as
#'   `c(3, 2)`.
#' @param method `"reml"` finds both covariances by restricted maximum likelihood. `"face"` subtracts smoothed moments.
#' @param covariates Numbers on which mean curves depend, a matrix or data frame with one row a curve; `"reml"` only.
#' @param visit Which visit each row is, with `"face"`: each has a mean curve of its own, refund's `twoway = TRUE`.
#' @param k,knots Of `"reml"` the number of smooth functions along t, by default that of least BIC; of `"face"` the number of knots, by default 35 or
#'   a third of the points.
#' @param quadrature `"trapezoid"`, `"simpson"`, `"riemann"`, or `"equal"`, which is refund's.
#' @param levels Names of both levels in what is given back.
#' @param privacy `list(epsilon = 1, delta = 1e-6, n = 2000)`, the guarantee. Its arguments are those of [dp_fdadp()]:
#'   `epsilon`, `delta`, `n`, `adjacency`, `labels`, `seed`, `study`, `purpose`. `npc` is then by default 0.95.
#' @param bounds,max_rows With `privacy`: the public range of the curves' values, `c(low, high)`, and the public number of rows of a person that
#'   count at most.
#' @param allow_useless With `privacy`: release even where the noise is more than half of the curves' variance?
#' @param object,x A fit.
#' @param newdata,newid,newcovariates,newvisit Curves on the same grid, the ids of their persons, and their covariates
#'   or visits. Predictions for a person use these curves alone, also where the person was in the fit.
#' @param type One of:
#'   * `"fit"`: predicted curves of the rows;
#'   * `"complete"`: the rows with their gaps filled;
#'   * `"person"`: curves of the persons, one each;
#'   * `"scores"`: a list of scores by level.
#' @param level Of `plot()`: names of the levels to show, default both.
#' @param ... Of `plot()`: passed on to [graphics::matplot()]; else not used.
#' @return A list of class `fdadp_mfpca`, plain R data. It has:
#'   * `mu`, `argvals` and `sigma2`;
#'   * `icc` (the share of the variance that is between persons) and `icc.noise` (with the noise below the line);
#'   * by level, as lists, `efunctions` (one a column, of unit L2 norm), `evalues`, `pve` and `npc`;
#'   * without privacy `scores` by level (of persons a row each, named by id), `Yhat`, `Yhat.person` (a row a person)
#'     and `icc.curve`;
#'   * with privacy `ledger`, `icc.interval` and `n`.
#' @references Di, Crainiceanu, Caffo and Punjabi (2009), \doi{10.1214/08-AOAS206}; Cui, Li, Crainiceanu and Xiao (2023),
#'   \doi{10.1080/10618600.2022.2115500}.
#' @seealso `re(id, covariance = "free")` in [fdadp()], for effects of covariates
#' @examples
#' if (fdadp_available()) {
#'   t <- seq(0, 1, length.out = 30)
#'   id <- rep(1:40, each = 4)
#'   Y <- outer(rnorm(40)[id], sin(pi * t)) + outer(rnorm(160), cos(pi * t)) + 0.1 * rnorm(160 * 30)
#'   fit <- mfpca(Y, id, t, npc = 1)
#'   fit
#'   plot(fit)
#'   head(fit$scores$person)
#'   dim(predict(fit, Y[1:2, ], c("new", "new"), type = "person"))
#' }
#' @export
mfpca <- function(Y, id, argvals = NULL, npc = if (is.null(privacy)) 0.99 else 0.95, method = c("reml", "face"), covariates = NULL, visit = NULL, k = NULL,
                  knots = NULL, quadrature = "trapezoid", levels = c("person", "row"), privacy = NULL, bounds = NULL, max_rows = NULL,
                  allow_useless = FALSE) {
  private <- !is.null(privacy)
  no_na(npc = npc, k = k, knots = knots, levels = levels, bounds = bounds, max_rows = max_rows, allow_useless = allow_useless)
  method <- one_of(method, c("reml", "face"), "method")
  if (missing(id)) input_error("id must say of each row whose it is, got nothing")
  privacy <- privacy_of(privacy)
  settings <- list(n_components = as_pair(npc, "npc"), levels = array(as.character(levels), length(levels)))
  if (private) {
    only_without(method = if (method != "reml") method, covariates = covariates, visit = visit, k = k, knots = knots)
    settings <- c(settings, list(bounds = as_vector(bounds, "bounds"), max_rows = as_whole(max_rows), allow_useless = isTRUE(allow_useless)))
  } else {
    if (!is.null(bounds) || !is.null(max_rows)) input_error("bounds and max_rows must be left out without privacy")
    settings <- c(settings, list(method = method, k = as_whole(k), n_knots = as_whole(knots), quadrature = quadrature))
  }
  y <- as_curves(Y, argvals, "Y", private = private)
  if (!private) {
    compare_rows_of(y, covariates)
    found <- joined_id(y, id)
    y <- found$y
    id <- found$id
  }
  path <- tempfile(fileext = ".npz")
  on.exit(unlink(path))
  fit <- call_python("fit_levels",
    Y = y$values, t = y$grid, groups = as_groups(id), covariates = as_numbers(covariates), visits = as_groups(visit), settings = settings,
    privacy = privacy, path = path
  )
  vectors <- c("mu", "argvals", "icc.curve", "icc.interval")
  fit[vectors] <- lapply(fit[vectors], function(v) if (!is.null(v)) as.double(v))
  fit[c("evalues", "pve")] <- lapply(fit[c("evalues", "pve")], lapply, as.double)
  if (!is.null(fit$ledger)) fit$ledger <- as_ledger(fit$ledger)
  own <- list(
    method = if (private) "private" else method, call = as_called(match.call(), quote(mfpca)), y.labels = y[intersect(c("labels", "backwards"), names(y))],
    file = readBin(path, "raw", file.size(path))
  )
  if (private) own["call"] <- NULL # it may hold data
  fit <- structure(c(fit[!vapply(fit, is.null, TRUE)], own), class = "fdadp_mfpca")
  if (private) fit else with_scores(fit, y, id, covariates, visit)
}

# The guarantee as Python's Privacy has it, of a list by the names of arguments of dp_fdadp().
privacy_of <- function(privacy) {
  if (is.null(privacy)) {
    return(NULL)
  }
  known <- c("epsilon", "delta", "n", "adjacency", "unit", "labels", "seed", "study", "purpose")
  if (!is.list(privacy) || is.null(names(privacy)) || !all(names(privacy) %in% known)) {
    privacy_error("privacy must be a list of ", paste(known, collapse = ", "), ", as list(epsilon = 1, delta = 1e-6), got ", paste(names(privacy), collapse = ", "))
  }
  if (is.null(privacy$epsilon)) privacy_error("epsilon must be a number above 0, got nothing")
  do.call(no_na, privacy)
  privacy[c("n", "seed")] <- list(as_whole(privacy[["n"]]), as_whole(privacy$seed))
  privacy["study"] <- list(study_path(privacy$study))
  names(privacy)[names(privacy) == "seed"] <- "random_state"
  privacy
}

only_without <- function(...) {
  given <- names(Filter(Negate(is.null), list(...)))
  if (length(given)) input_error(given[1], " must be left out with privacy")
}

# One number for both levels, or one of each.
as_pair <- function(npc, name) {
  if (!is.numeric(npc) || !length(npc) %in% 1:2) input_error(name, " must be one number, or two, of persons and of rows, got ", deparse(npc)[1])
  both <- lapply(npc, as_whole)
  if (length(both) == 1) both[[1]] else both
}

as_numbers <- function(covariates) {
  if (is.null(covariates)) {
    return(NULL)
  }
  values <- as.matrix(covariates)
  if (!is.numeric(values) && !is.logical(values)) input_error("covariates must be numbers, got ", class(covariates)[1])
  matrix(as.double(values), nrow(values))
}

# What the rows of the fit tell of themselves and their persons.
with_scores <- function(fit, y, id, covariates, visit) {
  found <- predicted_levels(fit, y, id, covariates, visit)
  fit$scores <- found$scores
  fit$Yhat <- found$fit
  fit$Yhat.person <- found$person
  fit
}

# Rows and ids joined by their names, where both have some that differ: those of Y that have an id.
joined_id <- function(y, id) {
  rows <- if (is.null(y$rows) || y$rows$counted) NULL else y$rows$names
  if (is.null(rows) || is.null(names(id)) || identical(c(rows), names(id))) {
    return(list(y = y, id = id))
  }
  found <- call_python("joined_names", labels = list(Y = rows, id = array(names(id), length(id))), primary = "Y")
  message(found$said)
  at <- lapply(found$rows, function(own) as.integer(own) + 1L)
  y$values <- y$values[at$Y, , drop = FALSE]
  rownames(y$values) <- c(rows)[at$Y]
  list(y = y, id = id[at$id])
}

# Covariates belong to the rows of Y by position; other names are refused.
compare_rows_of <- function(y, covariates) {
  rows <- if (is.data.frame(covariates) && .row_names_info(covariates) < 0) NULL else rownames(covariates)
  if (!is.null(rows) && !is.null(y$rows) && !y$rows$counted) {
    call_python("compare_names", labels = list(Y = y$rows$names, covariates = array(rows, length(rows))))
  }
}

predicted_levels <- function(object, y, id, covariates, visit) {
  if (!inherits(object, "fdadp_mfpca") || !is.raw(object$file)) input_error("object must be a fit of mfpca(), got ", class(object)[1])
  path <- tempfile(fileext = ".npz")
  on.exit(unlink(path))
  writeBin(object$file, path)
  found <- call_python("predict_levels",
    path = path, kind = kind_of(object), Y = y$values, t = if (is.null(y$grid)) object$argvals else y$grid, groups = as_groups(id),
    covariates = as_numbers(covariates), visits = as_groups(visit)
  )
  persons <- as.character(unlist(found$persons))
  rows <- rownames(y$values)
  scores <- stats::setNames(list(found$person, found$row), names(object$npc))
  rownames(scores[[1]]) <- persons
  rownames(scores[[2]]) <- rows
  curves <- Map(function(values, own) {
    rownames(values) <- own
    as_labelled(values, object$y.labels)
  }, found[c("curves", "fit", "complete")], list(persons, rows, rows))
  c(list(scores = scores), stats::setNames(curves, c("person", "fit", "complete")))
}

kind_of <- function(object) if (is.null(object$ledger)) "mfpca" else "private_mfpca"

#' @rdname mfpca
#' @export
predict.fdadp_mfpca <- function(object, newdata, newid, newcovariates = NULL, newvisit = NULL, type = c("fit", "complete", "person", "scores"), ...) {
  no_more(...)
  type <- one_of(type, c("fit", "complete", "person", "scores"), "type")
  if (missing(newdata) || missing(newid)) input_error("newdata and newid must be given: curves, and whose they are")
  found <- joined_id(as_curves(newdata, NULL, "newdata"), newid)
  predicted_levels(object, found$y, found$id, newcovariates, newvisit)[[type]]
}

#' @rdname mfpca
#' @export
summary.fdadp_mfpca <- function(object, ...) {
  no_more(...)
  structure(list(text = summary_text_of(object, kind_of(object))), class = "summary.fdadp_mfpca")
}

# The table of a fit that is the bytes of its file.
summary_text_of <- function(object, kind) {
  path <- tempfile(fileext = ".npz")
  on.exit(unlink(path))
  writeBin(object$file, path)
  call_python("summary_of", path = path, kind = kind)$text
}

#' @export
print.summary.fdadp_mfpca <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @rdname mfpca
#' @export
print.fdadp_mfpca <- function(x, ...) {
  cat("Multilevel functional principal components (", x$method, ") on ", grid_text(x$argvals), "\n", sep = "")
  for (level in names(x$npc)) {
    cat("\n", level, "\n", sep = "")
    print(data.frame(eigenvalue = signif(x$evalues[[level]], 4), share = round(x$pve[[level]], 4)))
  }
  cat("\nICC ", format(x$icc, digits = 3), ", with noise ", format(x$icc.noise, digits = 3), sep = "")
  if (!is.null(x$icc.interval)) cat("; 95 % interval", paste(format(x$icc.interval, digits = 3), collapse = " to "))
  cat("\nNoise variance:", format(x$sigma2, digits = 4), "\n")
  cat(if (is.null(x$ledger)) "Fitted without privacy: do not release." else x$ledger$headline, "\n", sep = "")
  invisible(x)
}

#' @rdname mfpca
#' @export
plot.fdadp_mfpca <- function(x, level = NULL, ...) {
  if (is.null(level)) level <- names(x$npc)
  for (one in level) one_of(one, names(x$npc), "level")
  if (length(level) > 1) {
    old <- graphics::par(mfrow = c(1, length(level)))
    on.exit(graphics::par(old))
  }
  for (one in level) {
    graphics::matplot(x$argvals, x$efunctions[[one]], type = "l", xlab = "t", ylab = "eigenfunctions", main = one, ...)
    shares <- paste0("component ", seq_along(x$pve[[one]]), ", ", format(100 * x$pve[[one]], digits = 3), " %")
    graphics::legend("topright", utils::head(shares, 5), col = seq_along(shares), lty = seq_along(shares), bty = "n", cex = 0.7)
  }
  invisible(x)
}
