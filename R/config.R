#' Which Python is used, and what is missing
#'
#' `fdadp_available()` says whether the Python half of the package can be used;
#' `fdadp_config()` shows what was found and, where something is missing, the command that
#' mends it. Both start Python, if it is not running yet.
#'
#' The Python is chosen by \pkg{reticulate}, once a session, before the first use: by the
#' environment variable `RETICULATE_PYTHON` (a path to a Python), by
#' [reticulate::use_python()] or [reticulate::use_virtualenv()], or because a virtual environment
#' is called `r-fdadp`. It must hold the Python package fdadp in the version of the R package.
#'
#' The Python package is not on PyPI. With reticulate 1.41 or newer, set the option `fdadp.source` (or the environment
#' variable `FDADP_SOURCE`) before `library(fdadp)`. Its value is a folder, or a `git+https://` address, that holds the
#' Python package. The R package then declares it by `reticulate::py_require()`, and reticulate makes an environment by
#' itself.
#'
#' @return `fdadp_available()`: `TRUE` or `FALSE`. `fdadp_config()`: a list of class `fdadp_config` with `ok`,
#'   the versions of `R`, `reticulate`, `numpy`, `fdadp` (the R package), the path `python`, and, where not `ok`,
#'   `problem` and `mend`.
#' @examples
#' fdadp_available()
#' fdadp_config()
#' @export
fdadp_config <- function() {
  problem <- tryCatch(
    {
      python()
      NULL
    },
    fdadp_config_error = identity
  )
  started <- reticulate::py_available()
  structure(
    list(
      ok = is.null(problem),
      R = as.character(getRversion()),
      reticulate = as.character(utils::packageVersion("reticulate")),
      fdadp = package_version_text(),
      python = if (started) reticulate::py_config()$python else NA_character_,
      numpy = if (started) numpy_version() else NA_character_,
      problem = problem$problem,
      mend = problem$mend
    ),
    class = "fdadp_config"
  )
}

#' @rdname fdadp_config
#' @export
fdadp_available <- function() fdadp_config()$ok

#' @export
print.fdadp_config <- function(x, ...) {
  cat("fdadp ", x$fdadp, ", R ", x$R, ", reticulate ", x$reticulate, "\n", sep = "")
  cat("Python: ", if (is.na(x$python)) "none" else x$python, sep = "")
  if (!is.na(x$numpy)) cat(", NumPy", x$numpy)
  cat("\n")
  if (x$ok) cat("Ready.\n") else cat("Not ready: ", x$problem, "\n", x$mend, "\n", sep = "")
  invisible(x)
}

config_error <- function(..., install = TRUE) {
  problem <- paste0(...)
  mend <- mend_text(install)
  error <- condition(paste0(problem, "\n", mend), c("config_error", "error"), "error")
  error$problem <- problem
  error$mend <- mend
  stop(error)
}

# What to type. `install`: the package is missing; else only NumPy is too new for this reticulate.
mend_text <- function(install) {
  old <- utils::packageVersion("reticulate") < FIRST_WITH_NUMPY_2
  numpy <- if (old) "'numpy<2' " else ""
  if (!install) {
    return(paste0("In a shell:  ", shQuote(reticulate::py_config()$python), " -m pip install 'numpy<2'"))
  }
  paste0(
    "In a shell, in a copy of the repository of fdadp ", package_version_text(), ":\n",
    "  python3 -m venv ~/.virtualenvs/r-fdadp\n",
    "  ~/.virtualenvs/r-fdadp/bin/python -m pip install ", numpy, ".\n",
    "then in a fresh R session, before library(fdadp):\n",
    "  Sys.setenv(RETICULATE_PYTHON = path.expand(\"~/.virtualenvs/r-fdadp/bin/python\"))"
  )
}

FIRST_WITH_NUMPY_2 <- "1.38"

# Only what the user named is ever asked for: nobody has promised that "fdadp" on PyPI would be this package.
.onLoad <- function(libname, pkgname) {
  register_methods()
  source <- getOption("fdadp.source", Sys.getenv("FDADP_SOURCE"))
  if (nzchar(source) && "py_require" %in% getNamespaceExports("reticulate")) {
    if (dir.exists(source)) source <- paste0("file://", normalizePath(source))
    getExportedValue("reticulate", "py_require")(paste("fdadp @", source))
  }
}
