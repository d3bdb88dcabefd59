PACKAGES = ("scikit-learn",)  # whose versions runs record
