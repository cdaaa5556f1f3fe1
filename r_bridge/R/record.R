#!/usr/bin/env Rscript
# Record what refund, mgcv and fda give, for regression tests without R.
#
#   Rscript record.R OUTDIR CASE ...   write OUTDIR/<case>.rds for each
#   Rscript record.R --list            names of the cases and the packages that each needs
#
# `python -m r_bridge record` calls this. Each file (format version 2, xz) is list(meta, input, output) holding only
# attribute-free numbers, strings and plain lists.

here <- dirname(normalizePath(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[1])))
for (file in c("plain.R", "cases-data.R", "cases-bases.R", "cases-affr.R", "cases-fpca.R", "cases-pffr.R",
               "cases-scalar.R", "repeated.R", "cases-repeated.R")) source(file.path(here, file))

recorded_packages <- c("refund", "mgcv", "fda", "lme4", "nlme", "fastFMM")

version_of <- function(p) tryCatch(as.character(packageVersion(p)), error = function(e) "not installed")

record <- function(name, call, input, output, note = "") {
  list(meta = list(case = name, call = call, note = note, R = as.character(getRversion()),
                   packages = recorded_packages, versions = vapply(recorded_packages, version_of, ""),
                   date = format(Sys.Date())),
       input = drop_null(input),
       output = drop_null(output))
}

# Packages beyond mgcv that a case needs; every function case_<name> is a case.
needs <- function(name) {
  if (name == "affr_sim" || grepl("^(basis_ps|basis_bs|tensor)", name)) return(character(0))
  if (name == "basis_fda_bspline") return("fda")
  if (name == "repeated_mixed") return(c("lme4", "nlme"))
  if (name == "repeated_fastfmm") return("fastFMM")
  if (grepl("canadian$|^fosr", name)) return(c("refund", "fda"))
  "refund"
}

known_cases <- function() sub("^case_", "", ls(globalenv(), pattern = "^case_"))

main <- function(args) {
  known <- known_cases()
  if (identical(args, "--list")) {
    cat(sprintf("%s %s", known, vapply(known, function(n) paste(c("mgcv", needs(n)), collapse = " "), "")), sep = "\n")
    return(invisible())
  }
  if (length(args) < 2) stop("usage: Rscript record.R OUTDIR CASE ...")
  unknown <- setdiff(args[-1], known)
  if (length(unknown)) stop("unknown case: ", paste(unknown, collapse = ", "))
  dir.create(args[1], showWarnings = FALSE, recursive = TRUE)
  failed <- FALSE
  for (name in args[-1]) {
    started <- proc.time()[["elapsed"]]
    path <- file.path(args[1], paste0(name, ".rds"))
    said <- tryCatch({
      for (package in c("mgcv", needs(name)))
        suppressPackageStartupMessages(library(package, character.only = TRUE))
      utils::capture.output(result <- get(paste0("case_", name))())
      saveRDS(plain(result, name), path, version = 2, compress = "xz")
      sprintf("%.0f kB", file.size(path) / 1024)
    }, error = function(e) {
      failed <<- TRUE
      paste("FAILED:", conditionMessage(e))
    })
    cat(sprintf("%-28s %s, %.1f s\n", name, said, proc.time()[["elapsed"]] - started))
  }
  if (failed) quit(status = 1)
}

if (sys.nframe() == 0L) main(commandArgs(TRUE))
