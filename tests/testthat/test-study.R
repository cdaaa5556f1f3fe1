# Studies: budgets in files, on which fits from R and Python draw.

sim <- function(n) {
  people <- simulate_affr(scenario = 1, n = n, seed = 0, n_points = 21)
  people$age <- rep(c(30, 60), length.out = n)
  people
}
public <- list(X = c(-4, 4), Y = c(-8, 8), age = c(18, 90))

test_that("fits draw on a study until it has no more", {
  skip_without_python()
  path <- tempfile(fileext = ".fdadp")
  made <- study_new(path, "Wards", epsilon = 2, delta = 1e-6, unit = "person", n = 1000, bounds = public["age"], sources = "manual")
  expect_s3_class(made, "fdadp_study")
  expect_equal(made$left, 1)
  expect_output(print(made), "bounds of age: 18 to 90 \\(manual\\)")
  data <- sim(1000)
  expect_error(dp_fdadp(Y ~ sff(X) + age, data, epsilon = 1, study = path, bounds = public[1:2]), "groups must be", class = "fdadp_privacy_error")
  expect_error(
    dp_fdadp(Y ~ sff(X) + age, data, epsilon = 1, study = path, bounds = list(X = c(-4, 4), Y = c(-8, 8), age = c(0, 200)), groups = 1:1000),
    "bounds of age must be those of the study"
  )
  expect_equal(study_show(path)$left, 1)
  fit <- dp_fdadp(Y ~ sff(X) + age, data, epsilon = 1.5, study = path, purpose = "growth", bounds = public[1:2], groups = 1:1000)
  shown <- study_show(path)
  expect_equal(nrow(shown$fits), 1)
  expect_equal(shown$fits$purpose, "growth")
  expect_equal(shown$fits$epsilon, 1.5, tolerance = 1e-6)
  expect_match(ledger(fit)$headline, "epsilon = 2")
  expect_error(
    dp_affr(data$Y, data$X, epsilon = 1.9, study = path, bounds = public[1:2], groups = 1:1000), "has left",
    class = "fdadp_privacy_error"
  )
  expect_error(dp_affr(data$Y, data$X, epsilon = 1, study = path, seed = 1, bounds = public[1:2], groups = 1:1000), "random_state must be left out")
  expect_identical(study_verify(path), character(0))
  file <- tempfile(fileext = ".npz")
  writeBin(fit$file, file)
  expect_identical(study_verify(path, file), character(0))
  writeBin(head(fit$file, -100), file)
  expect_length(study_verify(path, file), 1)
})

test_that("a certificate, and the end of a study", {
  skip_without_python()
  path <- tempfile(fileext = ".fdadp")
  study_new(path, "Wards", epsilon = 1, unit = "row", n = 50)
  out <- study_report(path, tempfile(fileext = ".html"), custodian = "Hospital")
  expect_true(all(file.exists(out)))
  expect_identical(study_verify(path, out[2]), character(0))
  study_new(other <- tempfile(fileext = ".fdadp"), "Wards", epsilon = 1, unit = "row", n = 50, bounds = public)
  expect_match(study_verify(other, out[2]), "the certificate is of another study")
  people <- sim(50)
  expect_error(
    dp_affr(people$Y, people$X, epsilon = 0.5, study = other, bounds = list(X = c(-9, 9), Y = c(-8, 8))),
    "bounds of X must be those of the study", class = "fdadp_privacy_error"
  )
  expect_equal(study_show(other)$left, 1)
  expect_match(paste(readLines(out[1], encoding = "UTF-8", warn = FALSE), collapse = " "), "Certificate of differential privacy")
  expect_output(print(study_close(path, "done")), "Wards")
  expect_error(study_close(path, "again"), "was closed", class = "fdadp_privacy_error")
  expect_error(study_new(path, "Wards", epsilon = 1, unit = "row", n = 50), "must name no file yet", class = "fdadp_privacy_error")
  expect_error(study_show(tempfile()), "which is not there", class = "fdadp_privacy_error")
  expect_error(study_show(3), "must be the path", class = "fdadp_privacy_error")
})
