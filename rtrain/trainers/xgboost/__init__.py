PACKAGES = ("xgboost",)  # whose versions runs record
