# Recorded cases: bases and penalties. They need mgcv; basis_fda_bspline needs fda, quadrature needs refund.

unit_grid <- function(m) seq(0, 1, length.out = m)

basis_case <- function(name, spec, spec_text, x, xnew) {
  dat <- data.frame(x = x)
  raw <- smooth.construct(spec, dat, NULL)
  con <- smoothCon(spec, dat, absorb.cons = FALSE)[[1]]
  cen <- smoothCon(spec, dat, absorb.cons = TRUE)[[1]]
  record(name, spec_text,
         input = list(x = x, xnew = xnew, k = spec$bs.dim, m = raw$p.order),
         output = list(knots = raw$knots, X = raw$X, S_raw = raw$S[[1]],
                       D = if (is.list(raw$D)) raw$D[[1]] else raw$D,
                       S_scaled = con$S[[1]], S_scale = con$S.scale,
                       rank = raw$rank, null_space_dim = raw$null.space.dim,
                       Xnew = Predict.matrix(raw, data.frame(x = xnew)),
                       centred = list(X = cen$X, S = cen$S[[1]],
                                      parts = smooth_parts(cen))),
         note = "xnew leaves the data range: linear extrapolation from the end knots for ps")
}

basis_x <- function() { set.seed(101); sort(c(0, 1, round(runif(60), 4))) }

case_basis_ps_k7_m22 <- function()
  basis_case("basis_ps_k7_m22", s(x, bs = "ps", k = 7, m = c(2, 2)),
             "smooth.construct(s(x, bs='ps', k=7, m=c(2,2)), data.frame(x), NULL)",
             basis_x(), c(-0.2, -0.001, 0, 0.33, 0.5, 1, 1.001, 1.2))

case_basis_ps_k10_m21 <- function()
  basis_case("basis_ps_k10_m21", s(x, bs = "ps", k = 10, m = c(2, 1)),
             "smooth.construct(s(x, bs='ps', k=10, m=c(2,1)), data.frame(x), NULL)",
             3 + 10 * basis_x(), 3 + 10 * c(-0.2, -0.001, 0, 0.33, 0.5, 1, 1.001, 1.2))

case_basis_bs_cubic <- function()
  basis_case("basis_bs_cubic", s(x, bs = "bs", k = 10, m = c(3, 2)),
             "smooth.construct(s(x, bs='bs', k=10, m=c(3,2)), data.frame(x), NULL)",
             basis_x(), c(0, 0.11, 0.33, 0.5, 0.77, 1))

case_tensor_te_k76 <- function() {
  set.seed(102)
  x <- rnorm(80); u <- runif(80)
  xn <- c(-4, -1, 0, 1, 4); un <- c(-0.1, 0.2, 0.5, 0.8, 1.2)
  dat <- data.frame(x = x, u = u)
  one <- function(np) {
    spec <- if (np) te(x, u, bs = "ps", k = c(7, 6), m = list(c(2, 2), c(2, 2))) else
      te(x, u, bs = "ps", k = c(7, 6), m = list(c(2, 2), c(2, 2)), np = FALSE)
    raw <- smooth.construct(spec, dat, NULL)
    con <- smoothCon(spec, dat, absorb.cons = FALSE)[[1]]
    cen <- smoothCon(spec, dat, absorb.cons = TRUE)[[1]]
    list(X = raw$X, S_raw = raw$S, S_scaled = con$S, S_scale = con$S.scale,
         knots = lapply(raw$margin, function(m) m$knots),
         margin_X = lapply(raw$margin, function(m) m$X),
         margin_S = lapply(raw$margin, function(m) m$S[[1]]),
         XP = if (length(raw$XP)) raw$XP else list(),
         rank = raw$rank, null_space_dim = raw$null.space.dim,
         Xnew = PredictMat(con, data.frame(x = xn, u = un)),
         centred = list(X = cen$X, S = cen$S, parts = smooth_parts(cen)))
  }
  record("tensor_te_k76", "te(x, u, bs='ps', k=c(7,6), m=list(c(2,2),c(2,2))), np=TRUE and FALSE",
         input = list(x = x, u = u, xnew = xn, unew = un, k = c(7, 6), m = c(2, 2)),
         output = list(np_true = one(TRUE), np_false = one(FALSE)))
}

case_basis_fda_bspline <- function() {
  x <- unit_grid(51)
  one <- function(nb, norder, range) {
    b <- create.bspline.basis(range, nbasis = nb, norder = norder)
    xx <- range[1] + diff(range) * x
    list(range = range, nbasis = nb, norder = norder, x = xx,
         interior_knots = b$params,
         eval = eval.basis(xx, b), eval_d1 = eval.basis(xx, b, 1),
         eval_d2 = eval.basis(xx, b, 2),
         penalty0 = getbasispenalty(b, 0), penalty1 = getbasispenalty(b, 1),
         penalty2 = getbasispenalty(b, 2))
  }
  record("basis_fda_bspline",
         "create.bspline.basis(range, nbasis, norder); eval.basis; getbasispenalty(., 0:2)",
         input = list(x = x),
         output = list(cubic15 = one(15, 4, c(0, 1)), cubic40 = one(40, 4, c(0, 1)),
                       cubic12_days = one(12, 4, c(0, 365)), quintic10 = one(10, 6, c(0, 1))))
}

case_quadrature <- function() {
  sizes <- c(30, 31, 55, 93)
  rules <- c("simpson", "trapezoidal", "riemann")
  one <- function(n) {
    X <- matrix(rnorm(3 * n), 3)
    s <- unit_grid(n)
    w <- lapply(rules, function(r)
      ff(X, xind = s, integration = r, check.ident = FALSE)$L[1, ])
    names(w) <- rules
    c(list(n = n, s = s), w, list(quadWeights = refund:::quadWeights(s)))
  }
  set.seed(5)
  out <- lapply(sizes, one); names(out) <- paste0("n", sizes)
  u <- sort(c(0, 1, runif(28)))
  X <- matrix(rnorm(90), 3)
  out$uneven30 <- list(n = 30, s = u,
    trapezoidal = ff(X, xind = u, integration = "trapezoidal", check.ident = FALSE)$L[1, ],
    riemann = ff(X, xind = u, integration = "riemann", check.ident = FALSE)$L[1, ],
    simpson = suppressMessages(ff(X, xind = u, integration = "simpson", check.ident = FALSE)$L[1, ]))
  record("quadrature", "ff(X, xind=s, integration=rule)$L[1, ]",
         input = list(sizes = sizes, rules = rules), output = out,
         note = "uneven30: 'simpson' silently becomes trapezoidal")
}
