PACKAGES = ("transformers",)  # whose versions runs record
