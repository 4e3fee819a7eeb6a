"""The papers' own figures, held against our cost model."""
