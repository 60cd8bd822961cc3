"""Many cards at once: shots laid over the machines of a farm, tasks for SkyPilot."""
