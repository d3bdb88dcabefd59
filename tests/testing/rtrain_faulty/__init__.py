"""A trainer with faults to choose from: softmax regression by gradient descent, in NumPy."""
