PACKAGES = ("tensorflow", "keras")  # whose versions runs record
