"""The same under another name."""

from my_project.models import TinyNet as Tiny

__all__ = ["Tiny"]
