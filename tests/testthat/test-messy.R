# Six messy files go into a fit as people read them; the order of the rows of any file is of no effect.

hours <- 0:23
stamps <- sprintf("2024-03-01 %02d:00", hours)
messy <- within(list(), {
  set.seed(1)
  ids <- sprintf("p%03d", 1:80)
  scores <- matrix(rnorm(160), 80)
  X <- round(10 + scores %*% rbind(sin(hours / 4), cos(hours / 4)) + rnorm(80 * 24, sd = 0.1), 4)
  people <- data.frame(pid = ids, age = round(rnorm(80, 50, 10), 1), sex = sample(c("F", "M"), 80, TRUE))
  people$y <- round(scores[, 1] + people$age / 50 + rnorm(80, sd = 0.1), 4)
})

wide <- function(names = sprintf("h%02d", hours)) cbind(messy$people, `colnames<-`(messy$X, names))

# Writes the rows of a table in an order of their own, and gives the path.
written <- function(table, seed, write = utils::write.csv) {
  path <- tempfile(fileext = ".csv")
  if (seed > 0) {
    set.seed(seed)
    table <- table[sample(nrow(table)), ]
  }
  write(table, path, row.names = FALSE)
  path
}

with_curves <- function(d, pattern) {
  d$X <- as.matrix(d[grepl(pattern, names(d))])
  d
}

# Curves by their ids beside a file of people by theirs: each column keeps its own row names.
beside <- function(X, people) list(X = X, y = by_id(people, "y"), age = by_id(people, "age"), sex = by_id(people, "sex"))
by_id <- function(people, name) stats::setNames(people[[name]], rownames(people))

people_file <- function(seed) utils::read.csv(written(messy$people, 10 * seed), row.names = "pid")

six <- list(
  wide = function(seed) with_curves(utils::read.csv(written(wide(), seed), row.names = "pid"), "^h"),
  semicolons = function(seed) with_curves(utils::read.csv2(written(wide(), seed, utils::write.csv2), row.names = "pid"), "^h"),
  `time stamps` = function(seed) with_curves(utils::read.csv(written(wide(stamps), seed), row.names = "pid", check.names = FALSE), "^2024"),
  long = function(seed) {
    long <- data.frame(pid = rep(messy$people$pid, 24), time = rep(stamps, each = 80), value = c(messy$X))
    long <- utils::read.csv(written(long, seed))
    beside(with(long, tapply(value, list(pid, time), mean)), people_file(seed))
  },
  `two files` = function(seed) {
    x <- utils::read.csv(written(data.frame(pid = messy$people$pid, messy$X), seed), row.names = "pid")
    beside(`colnames<-`(as.matrix(x), sprintf("h%02d", hours)), people_file(seed))
  },
  gaps = function(seed) {
    d <- wide()
    d[3, 10:12] <- NA
    d[40, 24:28] <- NA
    d$age[7] <- NA
    with_curves(utils::read.csv(written(d, seed), row.names = "pid"), "^h")
  }
)

ordinary <- function(d, form) {
  missing <- if (form == "gaps") list(X = "linear", age = "indicator") else "raise"
  suppressMessages(fdadp(y ~ lf(X) + age + sex, data = d, missing = missing))
}

private <- function(d) {
  bounds <- list(X = c(0, 20), y = c(-4, 6), age = c(18, 100), sex = c("F", "M"))
  dp_fdadp(y ~ lf(X) + age + sex, data = d, epsilon = 20, n = 80, bounds = bounds, seed = 1)
}

predictions <- function(fit) predict(fit, six$wide(0))[messy$ids]

for (form in names(six)) local({
  form <- form
  test_that(paste0(form, ": an ordinary fit, rows of each file in three orders"), {
    skip_without_python()
    fits <- lapply(0:2, function(seed) ordinary(six[[form]](seed), form))
    expect_gt(fits[[1]]$r.sq, 0.9)
    for (other in fits) {
      expect_gt(stats::cor(fitted(other)[messy$ids], messy$people$y), 0.9)
      expect_same(fitted(other)[messy$ids], fitted(fits[[1]])[messy$ids], tolerance = 1e-6)
    }
  })
  test_that(paste0(form, ": a private fit, rows of each file in three orders"), {
    skip_without_python()
    fits <- lapply(0:2, function(seed) private(six[[form]](seed)))
    for (other in fits[-1]) expect_identical(predictions(other), predictions(fits[[1]]))
  })
})

test_that("the forms of one table give one fit", {
  skip_without_python()
  first <- list(ordinary(six$wide(0), "wide"), private(six$wide(0)))
  for (form in c("semicolons", "two files", "long")) {
    d <- six[[form]](3)
    expect_same(fitted(ordinary(d, form))[messy$ids], fitted(first[[1]])[messy$ids], tolerance = 1e-6)
    expect_same(predictions(private(d)), predictions(first[[2]]), tolerance = 1e-6)
  }
})

test_that("columns named 0, 1, ... are only numbered, and h00, h01, ... are hours", {
  skip_without_python()
  grid_of <- function(names) utils::capture.output(print(summary(ordinary(beside(`dimnames<-`(messy$X, list(messy$ids, names)), people_file(0)), "two files"))))
  expect_match(paste(grid_of(hours), collapse = " "), "24 points on \\[0, 1\\]")
  expect_match(paste(grid_of(sprintf("h%02d", hours)), collapse = " "), "24 points on \\[0, 23\\]")
})

test_that("predictions have the names of their rows, and columns of a list are joined by theirs", {
  skip_without_python()
  d <- six[["two files"]](3)
  framed <- messy$people # counted rows, and curves that have names
  framed$X <- `dimnames<-`(messy$X, list(messy$ids, hours))
  lone <- lapply(d, function(column) if (is.matrix(column)) column[-1, ] else column)
  for (fit in list(ordinary(six$wide(0), "wide"), private(six$wide(0)))) {
    expected <- predict(fit, six$wide(0))
    expect_identical(names(expected), messy$ids)
    found <- predict(fit, d)
    expect_identical(names(found), rownames(d$X))
    expect_same(found[messy$ids], expected, tolerance = 1e-9)
    limits <- predict(fit, d, interval = "prediction")
    expect_same(limits$upr[messy$ids], predict(fit, six$wide(0), interval = "prediction")$upr, tolerance = 1e-9)
    expect_same(predict(fit, lone), found[-1], tolerance = 1e-9)
    expect_identical(names(predict(fit, framed)), messy$ids)
    d$age <- d$age[-1]
    expect_error(predict(fit, d), "age must have a row for each of X", class = "fdadp_input_error")
    d$age <- unname(d$y)
    expect_error(predict(fit, d), "X and sex must have the same row labels in the same order", class = "fdadp_input_error")
    d <- six[["two files"]](3)
  }
})

test_that("a basis of another package is answered by s(), C() takes text, and treatments may be a vector with names", {
  skip_without_python()
  set.seed(1)
  people <- data.frame(age = rnorm(40, 50, 10), sex = rep(c("f", "m"), 20))
  people$X <- matrix(rnorm(40 * 6), 40, dimnames = list(NULL, sprintf("h%02d", 0:5)))
  people$y <- rowMeans(people$X) + people$age / 50
  for (formula in c(y ~ lf(X) + bs(age), y ~ lf(X) + splines::ns(age, df = 3))) {
    expect_error(fdadp(formula, people), "formula must say s\\(age\\) for a smooth effect, got ", class = "fdadp_input_error")
  }
  labels <- fdadp(y ~ lf(X) + C(sex), people)
  as_factor <- fdadp(y ~ lf(X) + factor(sex), people)
  expect_equal(predict(labels, people[1:5, ]), predict(as_factor, people[1:5, ]))
  people$X[3, 2] <- NA
  people$age[7] <- NA
  by_list <- fdadp(y ~ lf(X) + age, people, missing = list(X = "linear", age = "indicator"))
  by_vector <- fdadp(y ~ lf(X) + age, people, missing = c(X = "linear", age = "indicator"))
  expect_equal(fitted(by_list), fitted(by_vector))
  expect_output(print(summary(by_list)), "Grid of X: 6 points on \\[0, 5\\]")
})
