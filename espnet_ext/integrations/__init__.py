"""Our sessions inside the tools that people already use."""
