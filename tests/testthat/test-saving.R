test_that("fits survive saveRDS, in another session too", {
  skip_without_python()
  path <- tempfile(fileext = ".rds")
  out <- tempfile(fileext = ".rds")
  on.exit(unlink(c(path, out)))
  fits <- list(plain = weather_fit(), private = private_fit())
  new <- list(plain = weather()$X[1:3, ], private = cache$cohort$X[1:3, ] / 2)
  saveRDS(list(fits = fits, new = new), path)
  again <- readRDS(path)$fits
  expect_identical(again, fits)
  code <- sprintf(
    ".libPaths(%s); suppressMessages(library(fdadp)); x <- readRDS('%s'); p <- Map(predict, x$fits, x$new, se.fit = TRUE); saveRDS(list(p, surface(x$fits$private, 0, 0.5, 0.5)), '%s')",
    paste(deparse(.libPaths()), collapse = ""), path, out
  )
  script <- tempfile(fileext = ".R")
  writeLines(code, script)
  expect_identical(system2(file.path(R.home("bin"), "Rscript"), script), 0L)
  elsewhere <- readRDS(out)
  expect_identical(elsewhere[[1]], Map(predict, fits, new, se.fit = TRUE))
  expect_identical(elsewhere[[2]], surface(fits$private, 0, 0.5, 0.5))
})

test_that("a pointer to Python that a saved session left behind is replaced", {
  skip_without_python()
  expected <- rmspe(matrix(0, 2, 2), matrix(1, 2, 2))
  the$module <- unserialize(serialize(the$module, NULL))
  expect_true(reticulate::py_is_null_xptr(the$module))
  expect_identical(rmspe(matrix(0, 2, 2), matrix(1, 2, 2)), expected)
})

test_that("a fit whose bytes are damaged says so", {
  skip_without_python()
  fit <- weather_fit()
  fit$file <- fit$file[1:100]
  expect_error(predict(fit, weather()$X), "written by fdadp", class = "fdadp_file_format_error")
  fit$file <- NULL
  expect_error(predict(fit, weather()$X), "must be a fit of affr", class = "fdadp_input_error")
})
