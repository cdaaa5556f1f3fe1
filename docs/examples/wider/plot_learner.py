"""
A private classifier
====================

``fdadp.learners`` has scikit-learn's interface on the same kernel. What it must be told, as it may not look it up in
the data: the classes, and how long a row can be.
"""

# %%
# Diagnoses of breast tumours; ten measurements each, scaled by ranges that a physician could write down.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from fdadp.learners import DPLogisticRegression

low = np.array([5, 5, 30, 100, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
high = np.array([30, 45, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1])
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split((X[:, :10] - low) / (high - low) * 2 - 1, y, random_state=0)
ordinary = LogisticRegression().fit(X_train, y_train).score(X_test, y_test)
epsilons = (0.1, 0.3, 1.0, 3.0, 10.0)
told = {"delta": 1e-5, "classes": [0, 1], "data_norm": 2.0}
scores = [
    [DPLogisticRegression(epsilon=e, random_state=seed, **told).fit(X_train, y_train).score(X_test, y_test)
     for seed in range(10)] for e in epsilons
]  # fmt: skip

# %%
# Ten draws of (seeded) noise for each ε: 426 people are few for a small budget.
figure, axis = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
axis.plot(np.repeat(epsilons, 10), np.ravel(scores), ".", color="#56B4E9", label="a draw of the noise")
axis.plot(epsilons, np.mean(scores, axis=1), "o-", color="#0072B2", label="mean")
axis.axhline(ordinary, color="#D55E00", linestyle="--", label="without privacy")
axis.axhline(max(y_test.mean(), 1 - y_test.mean()), color="0.5", linestyle=":", label="always the larger class")
axis.set(xscale="log", xlabel="ε (δ = 1e-5)", ylabel="accuracy, held out")
axis.legend(fontsize="small")
plt.show()
