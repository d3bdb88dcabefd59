PACKAGES = ("lightgbm",)  # whose versions runs record
