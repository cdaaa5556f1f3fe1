# What r_bridge/_rpy2.py calls: every call goes through bridge_call, which returns plain lists and never fails.

# Fits stay here under a key, because predictions need the whole R object; Python holds the key.
kept <- new.env()

keep <- function(object) {
  kept$.count <- (if (is.null(kept$.count)) 0 else kept$.count) + 1
  key <- paste0("fit", kept$.count)
  assign(key, object, kept)
  key
}

get_kept <- function(key) {
  if (!exists(key, kept, inherits = FALSE)) stop("this fit is no longer in R's memory: fit again")
  get(key, kept, inherits = FALSE)
}

drop_kept <- function(keys) {
  rm(list = intersect(keys, ls(kept)), envir = kept)
  NULL
}

fits_kept <- function() length(setdiff(ls(kept), ".count"))

# Run the function `name` of this file or its neighbours with a list of arguments. Warnings, messages, printed output
# and an error come back as text beside the value.
bridge_call <- function(name, arguments) {
  warned <- said <- character(0)
  failure <- value <- NULL
  printed <- utils::capture.output(
    value <- tryCatch(
      withCallingHandlers(
        do.call(get(name, envir = environment(bridge_call)), arguments, quote = TRUE),
        warning = function(w) {
          warned <<- c(warned, conditionMessage(w))
          invokeRestart("muffleWarning")
        },
        message = function(m) {
          said <<- c(said, sub("\n$", "", conditionMessage(m)))
          invokeRestart("muffleMessage")
        }),
      error = function(e) {
        failure <<- conditionMessage(e)
        NULL
      }))
  list(value = value, error = failure, warnings = unique(warned), messages = c(said, printed))
}

package_versions <- function(packages) {
  as.list(vapply(packages, function(p)
    tryCatch(as.character(packageVersion(p)), error = function(e) ""), ""))
}

# NULL if the package loads, else why not, in R's words.
load_package <- function(package) {
  suppressPackageStartupMessages(library(package, character.only = TRUE))
  NULL
}

echo <- function(x) x

describe <- function(x) {
  list(class = class(x), type = typeof(x), object = is.object(x), dim = dim(x), names = names(x), levels = levels(x),
       columns = if (is.data.frame(x)) lapply(x, function(v) list(class = class(v), dim = dim(v))) else NULL)
}

signal <- function(warnings, error = NULL, message = NULL) {
  for (text in warnings) warning(text, call. = FALSE)
  if (!is.null(message)) message(message)
  if (!is.null(error)) stop(error, call. = FALSE)
  length(warnings)
}

seeded <- function(seed) if (!is.null(seed)) set.seed(seed)

# ------------------------------------------------------------- fda's fd objects ---

# An fd object from its parts, and its parts again; `fda` must be loaded.
as_fd <- function(parts) {
  basis <- switch(parts$type,
    bspline = fda::create.bspline.basis(parts$domain, norder = parts$order, breaks = parts$breaks),
    fourier = fda::create.fourier.basis(parts$domain, nbasis = parts$n_basis, period = parts$period),
    monomial = fda::create.monomial.basis(parts$domain, nbasis = parts$n_basis),
    constant = fda::create.constant.basis(parts$domain),
    stop("type of basis must be bspline, fourier, monomial or constant, got ", parts$type))
  fda::fd(t(parts$coefficients), basis)
}

fd_parts <- function(fd) {
  basis <- fd$basis
  bspline <- basis$type == "bspline"
  drop_null(list(
    type = if (basis$type == "const") "constant" else if (basis$type == "monom") "monomial" else basis$type,
    coefficients = t(as.matrix(fd$coefs)), domain = basis$rangeval, n_basis = basis$nbasis,
    order = if (bspline) basis$nbasis - length(basis$params) else NULL,
    breaks = if (bspline) c(basis$rangeval[1], basis$params, basis$rangeval[2]) else NULL,
    period = if (basis$type == "fourier") basis$params else NULL))
}

fd_round_trip <- function(parts) fd_parts(as_fd(parts))

eval_fd <- function(parts, at) t(fda::eval.fd(at, as_fd(parts)))

smooth_fd <- function(values, argvals, n_basis, order) {
  basis <- fda::create.bspline.basis(range(argvals), nbasis = n_basis, norder = order)
  fd_parts(fda::smooth.basis(argvals, t(values), basis)$fd)
}
