"""ComfyUI: workflow files read as requests, and how ComfyUI itself places them on a card."""
