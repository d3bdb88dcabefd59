"""TensorFlow's examples of Ray Train, with digits of scikit-learn in place of the MNIST that they download."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # as the examples do themselves

import tensorflow
from large_digits import large_digits
from ray.train.examples.tf import tensorflow_mnist_example, tensorflow_quick_start

tensorflow.keras.datasets.mnist.load_data = lambda: (large_digits(), large_digits())
mnist = tensorflow_mnist_example.train_func
quick_start = tensorflow_quick_start.train_func_distributed
