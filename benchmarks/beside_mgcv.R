# Fits of mgcv::gam by REML: Rscript beside_mgcv.R FOLDER, which has models.csv and a table for each model.
suppressMessages(library(mgcv))
folder <- commandArgs(TRUE)[1]
models <- read.csv(file.path(folder, "models.csv"))
for (i in seq_len(nrow(models))) {
  model <- models[i, ]
  data <- read.csv(file.path(folder, paste0(model$name, ".csv")), stringsAsFactors = TRUE)
  if (!is.null(data$id)) data$id <- factor(data$id)
  family <- eval(parse(text = model$family))
  seconds <- sum(system.time(fit <- gam(as.formula(model$formula), family = family, data = data, method = "REML"))[1:2])
  out <- function(what, values) writeLines(format(values, digits = 17), file.path(folder, paste(model$name, what, sep = "_")))
  out("numbers", c(sum(fit$edf), fit$gcv.ubre, seconds))
  out("sp", fit$sp)
  out("fitted", as.numeric(fit$fitted.values))
}
cat(as.character(packageVersion("mgcv")), file = file.path(folder, "version"))
