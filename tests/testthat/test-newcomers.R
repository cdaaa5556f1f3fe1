# What someone new to the package does in the first hour: each of these was fitted without a word, or refused in words of Python.

people_of <- function(n = 60) {
  set.seed(4)
  id <- sprintf("p%03d", seq_len(n))
  a <- data.frame(age = round(stats::runif(n, 20, 80)), sex = sample(c("f", "m"), n, TRUE), row.names = id)
  a$X <- named(matrix(stats::rnorm(12 * n), n), id)
  a$y <- rowMeans(a$X) + a$age / 50 + stats::rnorm(n, sd = 0.1)
  a
}

named <- function(values, rows, columns = NULL) {
  dimnames(values) <- list(rows, columns)
  values
}

test_that("a matrix in a data frame whose row names are in another order is refused", {
  skip_without_python()
  a <- people_of()
  good <- fdadp(y ~ lf(X) + age, data = a)
  turned <- a
  turned$X <- a$X[60:1, ]
  told <- "data and X must have the same row labels in the same order.*data[$]X <- NULL|as by data[$]X\\[row.names\\(data\\), \\]"
  expect_error(fdadp(y ~ lf(X) + age, data = turned), told, class = "fdadp_input_error")
  expect_error(predict(good, turned), told, class = "fdadp_input_error")
  others <- a
  rownames(others$X) <- paste0("q", 1:60)
  expect_error(fdadp(y ~ lf(X) + age, data = others), "data and X must have the same row labels", class = "fdadp_input_error")
  # What belongs together stays: sorted, a subset, drawn again, with counted rows.
  expect_equal(fdadp(y ~ lf(X) + age, data = a[60:1, ])$edf, good$edf, tolerance = 1e-6)
  again <- a[c(1:60, 1:5), ]
  expect_equal(nobs(fdadp(y ~ lf(X) + age, data = again)), 65)
  counted <- a
  row.names(counted) <- NULL
  expect_equal(fdadp(y ~ lf(X) + age, data = counted[counted$age > 0, ][60:1, ])$edf, good$edf, tolerance = 1e-6)
  counted$Z <- counted$X[60:1, ]
  expect_error(fdadp(y ~ lf(X) + lf(Z), data = counted), "X and Z must have the same row labels", class = "fdadp_input_error")
})

test_that("a private fit joins such a matrix in its kernel, and refuses it where labels are public", {
  skip_without_python()
  a <- people_of(1000)
  fit <- function(data, ...) {
    dp_fdadp(y ~ lf(X) + age, data, epsilon = 1, delta = 1e-6, n = 1000, seed = 1, bounds = list(X = c(-4, 4), age = c(18, 90), y = c(-2, 4)), ...)
  }
  turned <- a
  turned$X <- a$X[1000:1, ]
  as_list <- list(X = turned$X, age = stats::setNames(a$age, row.names(a)), y = stats::setNames(a$y, row.names(a)))
  new <- a[1:5, ]
  expect_equal(predict(fit(turned), new), predict(fit(as_list), new))
  expect_equal(predict(fit(turned), new), predict(fit(a), new), tolerance = 1e-6)
  expect_error(fit(turned, labels = "public"), "data and X must have the same row labels", class = "fdadp_input_error")
  counted <- a
  row.names(counted) <- NULL
  expect_match(paste(unlist(fit(counted)$ledger$details), collapse = " "), "position")
})
