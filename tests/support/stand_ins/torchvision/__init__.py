"""Stands in for the parts of torchvision that Ray's examples use; it doesn't import with every build of torch."""

from torchvision import datasets, transforms

__all__ = ["datasets", "transforms"]
