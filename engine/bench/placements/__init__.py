"""Other ways to divide a model among machines, which the planner is compared with."""
