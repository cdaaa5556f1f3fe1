test_that("Python's errors are R's, with classes and the same text", {
  skip_without_python()
  texts <- from_python("
import numpy as np
from fdadp import AdditiveFunctionOnFunction
def text(**settings):
    try:
        AdditiveFunctionOnFunction(**settings).fit(np.ones((9, 5)), np.ones((8, 5)))
    except Exception as error:
        return str(error)
texts = [text(), text(n_basis_x=2), text(quadrature='none')]
", "texts")
  X <- matrix(1, 9, 5)
  Y <- matrix(1, 8, 5)
  of <- function(expression) tryCatch(expression, error = identity)
  first <- of(affr(Y, X))
  expect_s3_class(first, c("fdadp_input_error", "fdadp_error", "error", "condition"), exact = TRUE)
  expect_identical(conditionMessage(first), texts[[1]])
  expect_null(conditionCall(first)) # which might hold the data
  expect_identical(conditionMessage(of(affr(Y, X, k = c(2, 7)))), texts[[2]])
  expect_identical(conditionMessage(of(affr(Y, X, quadrature = "none"))), texts[[3]])
})

test_that("what nobody foresaw is an error of its own class", {
  skip_without_python()
  expect_error(call_python("rmspe", Y = 1), "TypeError", class = "fdadp_python_error")
})

test_that("Python's warnings are R's, once each", {
  skip_without_python()
  caught <- list()
  withCallingHandlers(
    predict(weather_fit(), weather()$X[1:2, ] + 100),
    warning = function(w) {
      caught <<- c(caught, list(w))
      invokeRestart("muffleWarning")
    }
  )
  expect_length(caught, 1)
  expect_s3_class(caught[[1]], c("fdadp_extrapolation_warning", "fdadp_warning", "warning", "condition"), exact = TRUE)
  expect_match(conditionMessage(caught[[1]]), "730 of 730 points of X lie outside the training range")
})

test_that("wrong arguments are named", {
  for (bad in list("a", 1:3, list(1), NULL)) {
    expect_error(affr(matrix(1, 3, 3), bad), "X must be a matrix with one curve per row", class = "fdadp_input_error")
  }
  expect_error(affr(matrix("a", 3, 3), matrix(1, 3, 3)), "Y must be numeric", class = "fdadp_input_error")
  expect_error(affr(diag(3), diag(3), method = "ML"), "method must be one of 'REML', 'GCV.Cp', 'GCV', got \"ML\"", class = "fdadp_input_error")
  expect_error(affr(diag(3), diag(3), k = 7), "k must be two numbers", class = "fdadp_input_error")
  expect_error(affr(diag(3), diag(3), s = "a"), "grid of X must be a vector of numbers", class = "fdadp_input_error")
  expect_error(affr(diag(3), diag(3), nknots = 3), "unused argument: nknots", class = "fdadp_input_error")
  expect_error(ledger(1), "must be a fit", class = "fdadp_input_error")
})
