"""Programs the fault tests run as processes of their own."""
