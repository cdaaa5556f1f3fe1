#' A study: a privacy budget in a file
#'
#' The custodian of the data makes a study once. Every private fit to its data, from R, Python or the command line,
#' draws on the same file (`dp_fdadp(..., study = "icu.fdadp")`). The cost of a fit is written there before its first
#' row is read. So a session that ends, or is killed, has spent at least what it has released. The budget is never
#' reset.
#'
#' @param path The study's file; for `study_new()` one that is not there yet, on a disk of this machine.
#' @param name Of the data, as their custodian calls them.
#' @param epsilon,delta All that may ever be spent; `delta` left out or 0 is pure epsilon.
#' @param unit Whom it protects: `"person"`, and then fits need `groups`, or `"row"`.
#' @param n The number of people, where it is public.
#' @param adjacency `"zero-out"` (the default where `n` is declared), `"add-remove"` (where not) or `"replace"`.
#' @param bounds What is public of columns, by name: `list("heart rate" = c(30, 180), sex = c("f", "m"))`. Fits use these, and no others.
#' @param sources Where bounds are from: one text, or texts by column.
#' @param custodian,data Who answers for the data, and what they are, for certificates.
#' @param expires Last day on which a fit may begin, `"YYYY-MM-DD"`.
#' @param files Files of models saved by Python or the command line; `study_verify()` takes certificates (`.json`), too.
#' @param out The certificate to write, `.html`; beside it is its `.json`.
#' @param use,region,author What a release is for, where the people are and whose law applies, and who writes the certificate.
#' @param reason Why it is closed, for the record.
#'
#' @return `study_new()` and `study_show()`: a list of class `fdadp_study` with `name`, `epsilon`, `delta`, `unit`, `n`, `left` (a share of the total),
#'   `fits` (a data frame) and `head` (the hash of the last entry). `study_verify()`: what is wrong, in words; `character(0)` where nothing
#'   is. `study_report()`: the paths written. `study_close()`: as `study_show()`, invisibly.
#' @seealso [dp_fdadp()], [dp_affr()]
#' @examples
#' if (fdadp_available()) {
#'   path <- tempfile(fileext = ".fdadp")
#'   study_new(path, "Wards 2024", epsilon = 2, delta = 1e-6, unit = "row", n = 1000)
#'   people <- simulate_affr(n = 1000, n_points = 21)
#'   fit <- dp_fdadp(Y ~ sff(X), people, epsilon = 1, study = path,
#'                   bounds = list(X = c(-4, 4), Y = c(-8, 8)))
#'   print(study_show(path))
#'   study_verify(path)
#' }
#' @export
study_new <- function(path, name, epsilon, delta = NULL, unit, n = NULL, adjacency = NULL, bounds = list(), sources = NULL,
                      custodian = NULL, data = NULL, expires = NULL) {
  if (length(bounds) && is.null(names(bounds))) privacy_error("bounds must be a list by column, list(age = c(low, high))")
  no_na(epsilon = epsilon, delta = delta, unit = unit, n = n, adjacency = adjacency, expires = expires)
  as_study(call_python("study_new",
    path = study_path(path), name = name, epsilon = epsilon, delta = delta, unit = unit, n = as_whole(n), adjacency = adjacency,
    bounds = lapply(bounds, as_bounds), sources = if (length(names(sources))) as.list(sources) else sources, custodian = custodian, data = data,
    expires = expires
  ))
}

#' @rdname study_new
#' @export
study_show <- function(path) as_study(call_python("study_show", path = study_path(path)))

#' @rdname study_new
#' @export
study_verify <- function(path, files = character(0)) {
  as.character(unlist(call_python("study_verify", path = study_path(path), files = as.list(path.expand(files)))))
}

#' @rdname study_new
#' @export
study_report <- function(path, out, files = character(0), custodian = NULL, data = NULL, use = NULL, region = NULL, author = NULL) {
  said <- list(custodian = custodian, data = data, use = use, region = region, author = author)
  as.character(unlist(call_python("study_report",
    path = study_path(path), out = path.expand(out), files = as.list(path.expand(files)), about = said[lengths(said) > 0]
  )))
}

#' @rdname study_new
#' @export
study_close <- function(path, reason) invisible(as_study(call_python("study_close", path = study_path(path), reason = reason)))

#' @export
print.fdadp_study <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

# The file of a study, from R's working directory.
study_path <- function(path) {
  if (is.null(path)) {
    return(NULL)
  }
  if (!is.character(path) || length(path) != 1 || is.na(path)) privacy_error("study must be the path of a file, got ", class(path)[1])
  file.path(normalizePath(dirname(path), mustWork = FALSE), basename(path))
}

as_study <- function(found) {
  fits <- lapply(found$fits, unlist)
  found$fits <- as.data.frame(fits, stringsAsFactors = FALSE)
  structure(found, class = "fdadp_study")
}
