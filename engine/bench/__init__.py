"""Measuring Shoal and what it is compared with, side by side."""
