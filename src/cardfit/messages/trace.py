"""Sentences of the room `trace`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "post-interpolate-image": N_(
        "an interpolation puts frames between two, and this makes {frames}: leave --post interpolate "
        "out, or ask for a video"
    ),
    # a pipeline of the reader's own
    "trace-not-a-pipeline": N_(
        "{found}: not a pipeline with components that are torch modules. Give a model's name, a Request, or a "
        "diffusers pipeline built on the meta device"
    ),
    "trace-call-of-a-model": N_(
        "{asked}: arguments of a call belong to a pipeline of your own. Of a model ask with a Request"
    ),
    "trace-no-argument": N_("{kind} takes no argument {asked}: give what its __call__ takes"),
    "trace-not-on-meta": N_(
        "{component} has weights on {device}; a dry run takes none. Build it with no weights: from_config under "
        "accelerate.init_empty_weights(), or under torch.device('meta')"
    ),
    "trace-own-hooks": N_(
        "{component} has offload hooks, which look for a card. Trace the pipeline without them and give offload to the "
        "estimate"
    ),
    "trace-no-size": N_(
        "What {kind} returns has no size in pixels: give height and width, and leave output_type out"
    ),
    "class-not-built": N_(
        "{pipeline} cannot be built from its classes' own configs: {reason}. Build the pipeline yourself on the meta "
        "device and hand it to trace"
    ),
    "cache-unwritable": N_(
        "The cache folder {folder} cannot be written ({reason}): the answer stands, the next one "
        "traces again. Name another folder in CARDFIT_CACHE."
    ),
    "atlas-damaged": N_(
        "{file}: this file of the atlas cannot be read ({why}). Reinstall cardfit, or make it anew from a checkout: "
        "make atlas."
    ),
    "atlas-gap": N_(
        "{model}: the {field} asked for lies outside what is shipped, and {package} is not installed to trace it. "
        "Install the extra: pip install 'cardfit[trace]'."
    ),
    "atlas-fewer-settings": N_(
        "Some settings (tiles, other attention kernels) are not in the shipped traces and were not tried: "
        "pip install 'cardfit[trace]' traces them."
    ),
    "atlas-other-kernel": N_(
        "runs another attention kernel, which is not in the shipped traces: pip install 'cardfit[trace]' traces it"
    ),
    "lock-unreadable": N_(
        "{path}: this lock file cannot be read ({why}). Give a requirements.txt, pip freeze lines, uv.lock, "
        "poetry.lock or pylock.toml."
    ),
    "lock-pins-nothing": N_(
        "{path} pins none of {packages}. Give a file that names their exact versions, as in diffusers==0.42.1."
    ),
    "lock-differs": N_(
        "{path} has {locked}, these figures were made with {made}: versions move the peak, so the band is {more} % "
        "wider. Re-trace: install those versions with the extra and ask again, pip install 'cardfit[trace]'."
    ),
    "dry-run-failed": N_(
        "{model}: the pipeline's own code stopped during the dry run: {reason}. "
        "Check the size and frames, or try the model's defaults."
    ),
    "attention-flash-refused": N_(
        "attention flash: {component} cannot run it, {where} {why}. Leave attention out, or say efficient."
    ),
    "flash-needs-half": N_("computes in {dtype}, and FlashAttention takes 16-bit types only"),
    "flash-takes-no-mask": N_("has a mask, and FlashAttention takes none"),
    "flash-head-dim": N_("has heads of {head_dim}, and FlashAttention takes up to {most}"),
    "flash-shape": N_("calls attention with shapes that FlashAttention does not take"),
    "prompt-embeds-not-enough": N_(
        "prompt_embeds: {model} asks {component} for more than the embeddings of the prompt. Leave prompt_embeds out."
    ),
    "chunk-does-not-divide": N_(
        "forward_chunking {asked}: a layer of {model} has {length} tokens, which {asked} does not divide. "
        "Give a number that divides {length}."
    ),
    "lora-not-loaded": N_(
        "loras: diffusers loads no adapter into {kind}, the {component} of this model. Leave loras out."
    ),
    "lora-no-layers": N_(
        "loras: no linear layer of {component} ({kind}) is called {targets}, which adapters are trained for. "
        "Leave loras out."
    ),
    "lora-kept": N_(
        "LoRA: {layers} layers of {component} ({targets}) carry it, {size} of factors, as diffusers' scripts train by "
        "default; an adapter that covers more layers takes more"
    ),
    "lora-named": N_(
        "LoRA: {layers} layers of {component} ({targets}) carry it, {size} of factors"
    ),
    "lora-from-file": N_(
        "LoRA {file}: rank {rank}, {size}, laid over the layers that diffusers' own loader finds"
    ),
    "lora-fused": N_(
        "LoRA fused: the run takes what it takes without. While fusing, which the printed lines do in host RAM, {size} "
        "of factors and {change} for one layer's change of {component} are held too."
    ),
    "lora-file-refused": N_(
        "{path}: {kind} cannot load this LoRA ({why}). Give one that was made for this model, or its rank."
    ),
    "lora-file-other-model": N_(
        "{path}: {kind} finds no layer of its own in this LoRA: it was made for another model. Give its rank to plan "
        "one of that rank."
    ),
    "add-on-weights": N_("{component} beside the denoiser: {kind}, {size} of weights"),
    "ip-adapter-weights": N_(
        "IP-Adapter: {size} more in {component}, a projection of the picture and two layers for each attention to text"
    ),
    "trace-other-versions": N_(
        "The dry run was made with {found}; the figures were checked with {tested}. Versions move the peak."
    ),
    "pipeline-missing": N_(
        "{model} runs with {pipeline}, which diffusers {version} does not have. "
        "Models that can be planned: cardfit models"
    ),
}
