"""Write scikit-learn's handwritten digits as PNG files, a folder per class.

python write_images.py FOLDER [IMAGES_PER_CLASS]
"""

import sys
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_digits


def write_images(folder, per_class=None):
    """Write the first ``per_class`` images of each digit, or all of them, below ``folder``."""
    digits = load_digits()
    pixels = (digits.images * 255 / 16).astype("uint8")
    for digit in range(10):
        own = pixels[digits.target == digit][:per_class]
        (folder / str(digit)).mkdir(parents=True, exist_ok=True)
        for number, image in enumerate(own):
            Image.fromarray(image).save(folder / str(digit) / f"{number:03}.png")


if __name__ == "__main__":
    write_images(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
