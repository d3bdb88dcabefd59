"""A figure of curves on logarithmic axes, as SVG: readable on a light and on a dark page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from measured import Growth

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 520, 240, 60, 20, 190, 45
COLORS = ("#3f51b5", "#c2185b", "#00897b", "#ef6c00")


def svg(curves: Sequence[Growth]) -> str:
    """Draw curves over the same sizes; each has its own unit, which its label names."""
    sizes = [math.log10(size) for size in curves[0].sizes]
    costs = [math.log10(cost) for curve in curves for cost in curve.costs]
    low, high = math.floor(min(costs)), max(math.ceil(max(costs)), math.floor(min(costs)) + 1)
    span = sizes[-1] - sizes[0]

    def x(size: float) -> float:
        return LEFT + (math.log10(size) - sizes[0]) / span * (WIDTH - LEFT - RIGHT)

    def y(cost: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(cost) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        'font-family="sans-serif" font-size="11" fill="#888">'
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#8884"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for size in curves[0].sizes:
        parts.append(f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{size:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{curves[0].axis}</text>')
    for number, (curve, color) in enumerate(zip(curves, COLORS, strict=False)):
        points = [(x(size), y(cost)) for size, cost in zip(curve.sizes, curve.costs, strict=True)]
        path = "L".join(f"{one:.1f} {other:.1f}" for one, other in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{one:.1f}" cy="{other:.1f}" r="3" fill="{color}"/>' for one, other in points]
        label = f"{curve.name} ({curve.unit})"
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 16 * number + 10}" fill="{color}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
