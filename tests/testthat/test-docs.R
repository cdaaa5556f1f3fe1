# Code of a page: all blocks of a language, which are left out where this is not the repository.
blocks_of <- function(page, language) {
  path <- file.path("..", "..", "docs", page)
  skip_if_not(file.exists(path), paste0("docs/", page, ": this is not the repository"))
  lines <- readLines(path, encoding = "UTF-8")
  starts <- grep(paste0("^```", language, "$"), lines)
  expect_gt(length(starts), 0)
  lapply(starts, function(start) {
    end <- start + which(lines[-seq_len(start)] == "```")[1]
    lines[seq_len(end - start - 1) + start]
  })
}

# Run R's blocks of a page as they stand there, in a folder of their own, with some data before them.
run_page <- function(page, data = list(), files = FALSE) {
  code <- unlist(blocks_of(page, "r"))
  code <- code[!grepl("RETICULATE_PYTHON", code)] # this session has its Python
  if (files) python <- blocks_of(page, "python")[[1]]
  folder <- tempfile()
  dir.create(folder)
  here <- setwd(folder)
  on.exit(setwd(here))
  few_cohorts()
  if (files) {
    code_of_files <- paste(c("import os", paste0("os.chdir(r'", folder, "')"), python), collapse = "\n")
    reticulate::py_capture_output(reticulate::py_run_string(code_of_files))
    on.exit(reticulate::py_run_string(paste0("os.chdir(r'", here, "')")), add = TRUE)
  }
  results <- list2env(data, new.env())
  utils::capture.output(expect_error(suppressMessages(eval(parse(text = code), results)), NA))
  results
}

people_of_page <- function() {
  set.seed(1)
  n <- 60
  people <- data.frame(arm = sample(c("placebo", "low", "high"), n, TRUE), age = stats::runif(n, 20, 80))
  t <- seq(0, 24, length.out = 13)
  people$Y <- named(outer(people$age / 50, cos(t / 6)) + matrix(stats::rnorm(n * 13), n) / 3, NULL, t)
  people
}

named <- function(values, rows, columns) {
  dimnames(values) <- list(rows, columns)
  values
}

test_that("the R of docs/r.md runs as it stands there", {
  skip_without_python()
  expect_s3_class(run_page("r.md")$private, "dp_affr")
})

test_that("the R of the pages for the first day runs on the files that their Python makes", {
  skip_without_python()
  expect_s3_class(run_page("start.md", files = TRUE)$private, "dp_affr")
  expect_s3_class(run_page("your-csv.md", files = TRUE)$model, "dp_fdadp")
  expect_s3_class(run_page("files.md", files = TRUE)$private, "dp_fdadp")
})

test_that("the R of the pages on questions to fits, on repeated curves and on sample sizes runs", {
  skip_without_python()
  people <- people_of_page()
  expect_s3_class(run_page("after-the-fit.md", list(people = people))$fit, "fdadp_regression")
  days <- list(Y = people$Y, x = people$age / 50, y = people$age, id = rep(1:15, 4))
  expect_s3_class(run_page("from-lme4.md", list(days = days))$numbers, "fdadp_regression")
  run_page("how-many.md")
})
