"""The transforms of Ray's examples, for images as arrays of bytes."""

import torch


class Compose:
    """One transform after the other."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for one in self.transforms:
            image = one(image)
        return image


class ToTensor:
    """Bytes (height, width) as numbers from 0 to 1 (1, height, width)."""

    def __call__(self, image):
        return torch.from_numpy(image)[None].float() / 255


class Normalize:
    """Subtract the mean and divide by the standard deviation of the one channel."""

    def __init__(self, mean, std):
        self.mean, self.std = mean[0], std[0]

    def __call__(self, image):
        return (image - self.mean) / self.std
