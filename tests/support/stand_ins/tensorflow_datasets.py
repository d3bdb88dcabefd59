"""Stands in for TensorFlow Datasets, which one of Ray's examples imports; its data comes from the config instead."""
