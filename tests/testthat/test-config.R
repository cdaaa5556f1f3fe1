# A fresh R for each: Python is chosen once a session.
fresh <- function(code, ...) {
  script <- tempfile(fileext = ".R")
  writeLines(c(sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")), "suppressMessages(library(fdadp))", code), script)
  paste(suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), script, stdout = TRUE, stderr = TRUE, env = c(...))), collapse = "\n")
}

test_that("the configuration is told, and is that of the package", {
  skip_without_python()
  config <- fdadp_config()
  expect_identical(config$fdadp, from_python("import fdadp; version = fdadp.__version__", "version"))
  expect_true(file.exists(config$python))
  expect_output(print(config), "Ready")
})

test_that("a Python without fdadp is told, with the command that mends it", {
  skip_without_python()
  folder <- tempfile()
  dir.create(file.path(folder, "fdadp"), recursive = TRUE)
  on.exit(unlink(folder, recursive = TRUE))
  package <- file.path(folder, "fdadp", "__init__.py")
  shadowed <- paste0("PYTHONPATH=", folder)
  writeLines("raise ImportError('No module named fdadp, for this test')", package)
  said <- fresh("print(fdadp_config()); cat(fdadp_available()); affr(diag(9), diag(9))", shadowed)
  expect_match(said, "Not ready: the Python package fdadp cannot be loaded", fixed = TRUE)
  expect_match(said, "-m pip install", fixed = TRUE)
  expect_match(said, "RETICULATE_PYTHON", fixed = TRUE)
  expect_match(said, "FALSE", fixed = TRUE)
  expect_match(said, "Error.*cannot be loaded")
  writeLines("__version__ = '0.0.1'", package)
  expect_match(fresh("print(fdadp_config())", shadowed), "must have the version of the R package, [0-9.]+, got 0.0.1")
})

test_that("a Python that is not there is told", {
  said <- fresh("print(fdadp_config())", "RETICULATE_PYTHON=/nowhere/bin/python")
  expect_match(said, "Not ready", fixed = TRUE)
  expect_match(said, "-m pip install", fixed = TRUE)
})

test_that("only a source that the user names is declared to reticulate", {
  skip_if_not("py_require" %in% getNamespaceExports("reticulate"), "py_require: reticulate is older than 1.41")
  declared <- "cat('[', reticulate::py_require()$packages, ']')"
  expect_match(fresh(declared, "FDADP_SOURCE=git+https://example.org/fdadp"), "fdadp @ git+https://example.org/fdadp", fixed = TRUE)
  expect_no_match(fresh(declared, "FDADP_SOURCE="), "fdadp", fixed = TRUE)
})
