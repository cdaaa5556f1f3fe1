# The one way to Python and back: `call_python()`. Errors and warnings come back as data and become conditions here.

call_python <- function(.name, ...) { # with a dot: `n = ` is not short for it
  result <- reticulate::py_to_r(python()$run(.name, list(...)))
  for (w in result$warnings) {
    warning(condition(w$text, c(w$classes, "warning"), "warning"))
  }
  if (!is.null(result$error)) {
    stop(condition(result$error$text, c(result$error$classes, "error"), "error"))
  }
  result$value
}

# A condition with the classes of `classes` (each "fdadp_..."), without a call: a call may hold somebody's data.
condition <- function(text, classes, kind) {
  structure(
    list(message = text, call = NULL),
    class = unique(c(paste0("fdadp_", classes), kind, "condition"))
  )
}

input_error <- function(...) stop(condition(paste0(...), c("input_error", "error"), "error"))
privacy_error <- function(...) stop(condition(paste0(...), c("privacy_error", "error"), "error"))

# The Python half of this package. A pointer to it that was saved with a session is null and is replaced.
python <- function() {
  if (is.null(the$module) || reticulate::py_is_null_xptr(the$module)) {
    the$module <- load_python()
  }
  the$module
}

load_python <- function() {
  no_miniconda <- Sys.getenv("RETICULATE_MINICONDA_ENABLED", NA)
  Sys.setenv(RETICULATE_MINICONDA_ENABLED = "FALSE") # a package does not offer to install a Python
  on.exit(if (is.na(no_miniconda)) {
    Sys.unsetenv("RETICULATE_MINICONDA_ENABLED")
  } else {
    Sys.setenv(RETICULATE_MINICONDA_ENABLED = no_miniconda)
  })
  version <- tryCatch(
    reticulate::py_to_r(reticulate::import("fdadp", convert = FALSE)$`__version__`),
    error = function(e) config_error("the Python package fdadp cannot be loaded: ", first_line(e))
  )
  own <- package_version_text()
  if (!identical(version, own)) {
    config_error("the Python package fdadp must have the version of the R package, ", own, ", got ", version)
  }
  module <- tryCatch(
    reticulate::import_from_path("fdadp_from_r", system.file("python", package = "fdadp"), convert = FALSE),
    error = function(e) config_error("the Python package fdadp cannot be used: ", first_line(e))
  )
  found <- tryCatch(
    reticulate::py_to_r(module$about(matrix(as.double(1:6), 2))),
    error = function(e) list(matrices = FALSE)
  )
  if (!isTRUE(found$matrices)) {
    config_error(
      "reticulate ", utils::packageVersion("reticulate"), " cannot pass matrices to NumPy ", numpy_version(),
      ": NumPy must be older than 2, or reticulate newer",
      install = FALSE
    )
  }
  module
}

numpy_version <- function() {
  tryCatch(
    reticulate::py_to_r(reticulate::import("numpy", convert = FALSE)$`__version__`),
    error = function(e) NA_character_
  )
}

package_version_text <- function() as.character(utils::packageVersion("fdadp"))

first_line <- function(e) {
  lines <- strsplit(conditionMessage(e), "\n", fixed = TRUE)[[1]]
  lines <- lines[nzchar(trimws(lines))]
  if (length(lines)) trimws(lines[1]) else class(e)[1]
}

# Plain values on their way to Python: vectors stay vectors there, whatever their length.
as_vector <- function(x, name) {
  if (is.null(x)) {
    return(NULL)
  }
  if (!is.numeric(x)) {
    input_error(name, " must be a vector of numbers, got ", class(x)[1])
  }
  array(as.double(x), length(x))
}

# A whole number stays one; anything else goes as it is, for Python to refuse.
as_whole <- function(x) {
  whole <- is.numeric(x) && length(x) == 1 && is.finite(x) && x == round(x) && abs(x) < .Machine$integer.max
  if (whole) as.integer(x) else x
}
