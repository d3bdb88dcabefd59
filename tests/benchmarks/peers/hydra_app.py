"""A bare Hydra application, to compare ``--cfg job`` with."""

import hydra
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="hydra_app", config_name="config")
def main(cfg: DictConfig) -> None:
    """Do nothing."""


if __name__ == "__main__":
    main()
