PACKAGES = ("lightning",)  # whose versions runs record
