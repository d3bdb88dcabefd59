PACKAGES = ("torch", "torchmetrics")  # whose versions runs record
