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

test_that("data that are no columns are refused in the same words by all fits", {
  skip_without_python()
  told <- "data must be a data frame or a list of columns, got character"
  expect_error(fdadp(y ~ age, "people.csv"), told, class = "fdadp_input_error") # was R's own "invalid 'envir' argument"
  expect_error(dp_fdadp(y ~ age, "people.csv", epsilon = 1, bounds = list(y = 0:1, age = 0:1)), told, class = "fdadp_input_error")
  expect_error(survival_regression(Surv(y, d) ~ age, "people.csv"), told, class = "fdadp_input_error")
})

test_that("bounds that R read as text are no levels, and messages speak R", {
  skip_without_python()
  a <- people_of()
  private <- function(formula = y ~ age, ...) dp_fdadp(formula, a, epsilon = 1, n = 60, ...)
  told <- "bounds must be numbers, c\\(18, 90\\), for a range, or a factor for two labels, got c\\(\"18\", \"90\"\\)"
  expect_error(private(bounds = list(age = c("18", "90"), y = c(-2, 4))), told, class = "fdadp_input_error")
  expect_error(private(bounds = list(y = c(-2, 4))), "as in bounds = list\\(age = c\\(low, high\\)\\), or a list", class = "fdadp_privacy_error")
  expect_error(private(y ~ ., bounds = list(y = c(-2, 4))), "'.' stands for none", class = "fdadp_input_error")
  one <- list(epsilon = 1, n = 20)
  expect_error(mfpca(a$X, rep(1:20, 3), privacy = one, max_rows = 3), "as in bounds = c\\(low, high\\), got NULL", class = "fdadp_privacy_error")
  expect_error(fpca(a$X, foo = 1), "unused argument: foo", class = "fdadp_input_error")
  expect_error(write_people("/nowhere/people.csv"), "^No such file or directory: /nowhere/people.csv")
  a$d <- 1
  a$y <- abs(a$y)
  late <- "the end of each period, such as 0:8, got \\[5.0, 0.0\\]"
  expect_error(survival_regression(Surv(y, d) ~ age, a, times = c(5, 0)), late, class = "fdadp_input_error")
})

test_that("numbers that R read as text are no factor", {
  skip_without_python()
  a <- people_of()
  a$age <- as.character(a$age)
  a$age[4] <- "thirty"
  told <- "age is text, but 59 of 60 entries are numbers \\('thirty' in row 4\\): read.csv2"
  expect_error(fdadp(y ~ lf(X) + age, data = a), told, class = "fdadp_input_error")
  expect_error(fdadp(y ~ lf(X) + s(age), data = a), told, class = "fdadp_input_error")
  a$age <- sub(".", ",", sprintf("%.1f", people_of()$age), fixed = TRUE)
  expect_error(fdadp(y ~ age, data = a), "age is text, but 60 of 60", class = "fdadp_input_error")
  a$y <- sub(".", ",", sprintf("%.2f", a$y), fixed = TRUE)
  expect_error(fdadp(y ~ sex, data = a), "y is text, but 60 of 60", class = "fdadp_input_error")
  b <- people_of()
  b$site <- rep(c("1", "2", "3"), 20) # labels, though they are numbers
  expect_equal(fdadp(y ~ site, data = b)$edf, 3, tolerance = 1e-6)
  b$half <- rep(c("1.5", "2.5"), 30)
  expect_equal(fdadp(y ~ C(half), data = b)$edf, 2, tolerance = 1e-6)
})

test_that("column names that give no grid are told, and dates are a grid", {
  skip_without_python()
  a <- people_of()
  colnames(a$X) <- sprintf("01.03.2024 %02d:00", 0:11)
  expect_message(fdadp(y ~ lf(X), data = a), "column names of X were not read as points; its grid is even on \\[0, 1\\]; give grids = list\\(X")
  colnames(a$X) <- 0:11
  expect_message(fdadp(y ~ lf(X), data = a), "column names of X were not read")
  colnames(a$X) <- sprintf("2024-03-01 %02d:00", 0:11)
  expect_no_message(named <- fdadp(y ~ lf(X), data = a))
  colnames(a$X) <- NULL
  times <- as.POSIXct("2024-03-01", tz = "UTC") + 3600 * 0:11
  expect_equal(fdadp(y ~ lf(X), data = a, grids = list(X = times))$coefficient.names, named$coefficient.names)
  days <- fdadp(y ~ lf(X), data = a, grids = list(X = as.Date("2024-03-01") + 0:11))
  expect_equal(range(coef(days, "lf(X)")$s), c(0, 11))
  expect_error(fdadp(y ~ lf(X), data = a, grids = list(X = times[-1])), "grid of X must have 12 points, got 11", class = "fdadp_input_error")
})

test_that("a factor has the name of its column and that of its term", {
  skip_without_python()
  a <- people_of()
  fit <- fdadp(y ~ C(sex) + age, data = a)
  expect_equal(level_contrasts(fit, "sex")$value, level_contrasts(fit, "C(sex)")$value)
  expect_equal(coef(fit, "sex"), coef(fit, "C(sex)"))
  bare <- fdadp(y ~ sex + age, data = a)
  expect_equal(level_contrasts(bare, "C(sex)")$value, level_contrasts(fit, "sex")$value)
})

test_that("groups are a column by name or bare, and errors within groups need some", {
  skip_without_python()
  a <- people_of()
  a$id <- rep(paste0("g", 1:20), 3)
  fit <- fdadp(y ~ age, data = a, groups = a$id)
  expect_equal(vcov(fdadp(y ~ age, data = a, groups = id)), vcov(fit))
  expect_equal(vcov(fdadp(y ~ age, data = a, groups = "id")), vcov(fit))
  expect_error(fdadp(y ~ age, data = a, groups = "who"), "groups must be a column of data.*got \"who\"", class = "fdadp_input_error")
  expect_error(fdadp(y ~ age, data = a, se = "cluster"), "without groups, got \"cluster\"", class = "fdadp_input_error")
  private <- function(...) {
    dp_fdadp(y ~ age, a, epsilon = 1, delta = 1e-6, n = 20, seed = 1, allow_useless = TRUE, bounds = list(age = c(18, 90), y = c(-2, 4)), ...)
  }
  new <- a[1:4, ]
  expect_equal(predict(private(groups = id), new), predict(private(groups = a$id), new))
  expect_equal(predict(private(groups = "id"), new), predict(private(groups = a$id), new))
  expect_error(private(groups = "who"), "groups must be a column of data", class = "fdadp_input_error")
})

test_that("a summary of numbers has the table of coefficients, and one number its exact p", {
  skip_without_python()
  a <- people_of()
  fit <- fdadp(y ~ lf(X) + age + C(sex), data = a)
  table <- coef(summary(fit))
  expect_identical(rownames(table), c("(Intercept)", "age", "C(sex)[m]"))
  expect_equal(unname(table["age", "t"]), unname(table["age", 1] / table["age", 2]))
  expect_output(print(summary(fit)), "estimate +std. error.*\\(Intercept\\).*age.*C\\(sex\\)\\[m\\].*Wald tests")
  slope <- average_slopes(fit, "age")
  ratio <- slope$value / slope$se
  expect_gt(ratio, 8)
  expect_lt(attr(slope, "test")$p, 1e-8)
  shown <- utils::capture.output(print(slope))
  expect_match(shown[length(shown)], "p = [0-9.]+e-[0-9]+ that it is 0$|p < 2e-16 that it is 0$")
  attr(slope, "test")$p <- 1 / 4000
  expect_output(print(slope), "p < 0.00025 that it is 0")
})

test_that("what other packages write is answered with what is written here", {
  skip_without_python()
  a <- people_of()
  a$id <- rep(1:20, 3)
  expect_error(fdadp(y ~ age + (1 | id), data = a), "re\\(id\\) for \\(1 \\| id\\)", class = "fdadp_input_error")
  expect_error(fdadp(y ~ (age | id), data = a), "slopes = week", class = "fdadp_input_error")
  expect_error(fdadp(y ~ poly(age, 2), data = a), "s\\(age\\) for a smooth effect", class = "fdadp_input_error")
  expect_error(fdadp(y ~ X, data = a), "X is a curve: formula must say lf\\(X\\)", class = "fdadp_input_error")
  expect_error(fdadp(y ~ s(age, foo = 1), data = a), "has no argument 'foo'", class = "fdadp_input_error")
  fit <- fdadp(y ~ lf(X) + age, data = a)
  expect_error(average_slopes(fit, "X"), "mean_difference\\(\\) compares two curves", class = "fdadp_input_error")
  expect_error(predict(fit, list(X = a$X[1, ], age = 30)), "matrix\\(x, 1\\)", class = "fdadp_input_error")
  expect_false(any(grepl("NaN", utils::capture.output(print(anova(fit, fdadp(y ~ age, data = a)))))))
})

test_that("the page from a CSV has its file in R", {
  skip_without_python()
  path <- write_people(tempfile(fileext = ".csv"), n = 40, seed = 2)
  people <- utils::read.csv2(path)
  expect_identical(dim(people), c(40L, 28L))
  people$rate <- as.matrix(people[sprintf("h%02d", 0:23)])
  fit <- fdadp(days ~ lf(rate) + age + C(sex), data = people, missing = list(rate = "linear", age = "indicator"))
  usual <- list(rate = matrix(75, 1, 24), age = 50, sex = "f")
  expect_identical(nrow(mean_difference(fit, within(usual, rate <- rate + 1), usual)), 1L)
})
