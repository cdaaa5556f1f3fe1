from .adaboost_and_naive_bayes import PublishedDPAda as PublishedDPAda
from .adaboost_and_naive_bayes import PublishedGaussianNB as PublishedGaussianNB
from .adaboost_and_naive_bayes import PublishedNoisyAdaBoost as PublishedNoisyAdaBoost
from .laplace_on_regression import PublishedNoise as PublishedNoise
from .pca import PublishedDPDPCA as PublishedDPDPCA
from .pca import PublishedPCA as PublishedPCA
