PACKAGES = ("rtrain-centroid",)  # whose versions runs record
