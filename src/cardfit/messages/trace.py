"""Sentences of the room `trace`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "cache-unwritable": N_(
        "The cache folder {folder} cannot be written ({reason}): the answer stands, the next one "
        "traces again. Name another folder in CARDFIT_CACHE."
    ),
    "dry-run-failed": N_(
        "{model}: the pipeline's own code stopped during the dry run: {reason}. "
        "Check the size and frames, or try the model's defaults."
    ),
    "pipeline-missing": N_(
        "{model} runs with {pipeline}, which diffusers {version} does not have. "
        "Models that can be planned: cardfit models"
    ),
}
