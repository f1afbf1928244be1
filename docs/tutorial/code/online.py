import numpy as np

scores = [np.array([1.0, 3.0]), np.array([2.0, 7.0]), np.array([5.0, 0.0])]
top, total = -np.inf, 0.0
for block in scores:
    new_top = max(top, block.max())
    total = total * np.exp(top - new_top) + np.exp(block - new_top).sum()
    top = new_top
    print(f"top {top}, total {total:.6f}")
everything = np.concatenate(scores)
print(f"at once:   {np.exp(everything - everything.max()).sum():.6f}")
