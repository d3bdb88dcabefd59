PACKAGES = ("jax", "flax", "optax")  # whose versions runs record
