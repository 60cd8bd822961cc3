"""Sentences of the room `library`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "unknown-model": N_("{asked}: no such model. {suggestion}List them: cardfit models"),
    "did-you-mean": N_("did you mean {names}? "),
    # what a model cannot make
    "task-not-made": N_(
        "{model} does not do {asked}; it does: {allowed}. Leave the task out, or take another model."
    ),
    "size-not-multiple": N_(
        "{asked}: {model} takes only multiples of {multiple} a side, its pipeline refuses others. Nearest: {near}."
    ),
    "size-fixed": N_(
        "{asked}: {model} makes only {allowed} ({why}). Ask for that size, or take another model."
    ),
    "size-too-large": N_(
        "{asked}: {model} goes up to {allowed} pixels a side ({why}). Ask for less and upscale."
    ),
    "size-too-small": N_(
        "{asked}: {model} takes whole multiples of {multiple}, so nothing is left. Ask for more."
    ),
    "size-below-tile": N_(
        "{asked}: the VAE of {model} decodes whole tiles of {tile} pixels only. Ask for at least that."
    ),
    "frames-of-image-model": N_(
        "num_frames {asked}: {model} makes single images. For more pictures use batch; for video take a video model."
    ),
    "frames-too-many": N_(
        "num_frames {asked}: {model} makes at most {allowed} ({why}). Ask for fewer frames."
    ),
    "frames-below-tile": N_(
        "num_frames {asked}: the VAE of {model} decodes whole tiles of {tile} frames only. Ask for at least that."
    ),
    # what a model makes of a request
    "defaults-taken": N_("taken from {model}, because left open: {fields}"),
    "side-becomes": N_(
        "{side} becomes {becomes} for this model: it makes multiples of {multiple} a side, so {asked} is made as {made}"
    ),
    "size-becomes": N_("{asked} becomes {made} for this model ({why})"),
    "size-resized": N_("{asked} is made as {made} and then resized to what was asked"),
    "larger-than-made-for": N_(
        "{asked} is larger than {model} was made for ({sizes}): it runs, pictures may repeat"
    ),
    "frames-become": N_("{asked} frames become {made} for this model, which makes {grid} frames"),
    "frames-left-blank": N_(
        "{asked} frames: the VAE of {model} decodes whole tiles, so frames after the first {decoded} stay blank"
    ),
    "longer-than-made-for": N_(
        "{asked} frames are more than {model} was made for ({made_for}): it runs, quality may fall"
    ),
    "plays-for": N_("{frames} frames at {fps} fps play {seconds} s"),
    "fps-of-image-model": N_("fps is ignored: {model} makes single images"),
    "no-prompt": N_("prompt_tokens is ignored: {model} takes a picture, not a text"),
    "prompt-truncated": N_("a prompt of {asked} tokens is cut to the {limit} that {model} reads"),
    "pipeline-not-in-diffusers": N_(
        "{pipeline} is not part of diffusers: {model} is counted but cannot be dry-run"
    ),
    # add-ons
    "no-such-add-on": N_(
        "{field}: diffusers has none that goes with {model} ({pipeline}), or none is known here. Leave it out, or take "
        "another model."
    ),
    "add-on-unknown": N_("{field} {asked}: not known for {model}. It takes: {allowed}."),
    "add-on-task": N_(
        "{field} with task {task}: {model} takes it for {allowed} only. Ask for that task, or leave it out."
    ),
    "add-ons-together": N_(
        "{one} and {other}: no pipeline of diffusers takes both at once. Leave one of them out."
    ),
    "add-ons-apart": N_(
        "{argument}: the pipeline of {model} that takes the other add-ons for {task} has no such argument, so they do "
        "not go together. Leave one of them out."
    ),
    "one-add-on-only": N_(
        "{asked} of {kind}: its pipeline takes one. Ask for one, or for another model."
    ),
    "controlnets-apart": N_(
        "controlnets: these go with different pipelines of {model} ({pipelines}), so they cannot run together. Give "
        "those of one."
    ),
    "controlnet-layers": N_(
        "{field} {asked}: the ControlNet of {model} has no such number of its own. It takes: {allowed}."
    ),
    "image-encoders-apart": N_(
        "ip_adapters: these read pictures with different encoders ({encoders}), and a pipeline of {model} has one. "
        "Give those of one encoder."
    ),
    "reference-images-not-taken": N_(
        "reference_images: {pipeline} ({model}) is shown one picture at most. Leave it out."
    ),
    "lora-of-nothing": N_("loras: an adapter needs a rank, or a file that has one. Give either."),
    "lora-file-says-it": N_(
        "loras: {file} says its own layers and dtype. Leave targets and dtype out."
    ),
    "lora-file-not-here": N_(
        "loras: {file} is a file, and this server reads none of its visitors'. Give its rank, as in 32."
    ),
    "lora-file-not-read": N_("{path}: this LoRA cannot be read ({why}). Give a safetensors file."),
    "lora-file-changed": N_(
        "{path}: what it holds is not what was planned. Leave header_sha256 out to plan what it holds now."
    ),
    "lora-file-without": N_(
        "{path}: no pair of low-rank factors is in it, so it is no LoRA (other kinds are not counted). Give a LoRA, or "
        "its rank."
    ),
    # settings
    "no-such-component": N_(
        "{field} for {asked}: {model} has no such component; it has: {allowed}"
    ),
    "component-not-loaded": N_(
        "{name} is not loaded on its own in {model}: its setting changes nothing"
    ),
    "vae-knob-missing": N_("{knob}: {vae}, the VAE of {model}, has no such switch. Leave it out."),
    "no-text-encoder": N_("prompt_embeds: {pipeline} ({model}) encodes no prompt. Leave it out."),
    "no-forward-chunking": N_(
        "forward_chunking: {kind}, the denoiser of {model}, has no enable_forward_chunking; these classes do: "
        "{allowed}. Leave it out."
    ),
    "no-fused-qkv": N_(
        "fuse_qkv: {kind}, {component} of {model}, has no projections that diffusers fuses. Leave it out."
    ),
    "compile-as-eager": N_(
        "compile: what compiled kernels and CUDA graphs take is not known; the figures are those of the eager run, and "
        "graphs keep memory of their own beside them"
    ),
    "no-decode-chunk": N_(
        "decode_chunk_size: {pipeline} ({model}) has no such argument; only svd, svd-xt and animatediff-sd1.5 take it. "
        "Try vae_tiling."
    ),
    "tiling-required": N_("vae_tiling off: {vae} of {model} decodes only in tiles. Leave it on."),
    "tile-fixed": N_("{knob}: the tiles of {vae} ({model}) have a fixed size. Leave it out."),
    "tile-without-tiling": N_(
        "{knob} {found} with vae_tiling off: switch tiling on, or leave {knob} out"
    ),
    "overlap-too-large": N_("vae_overlap {overlap} must be smaller than the tile of {tile} pixels"),
    # offload
    "group-knob-alone": N_(
        "{knob} {found} with offload {offload}: {knob} belongs to group offload. Leave it out, or choose offload "
        "group-block or group-leaf."
    ),
    "blocks-of-leaves": N_(
        "num_blocks_per_group {found} with offload group-leaf: leaves are moved one by one. Leave it out, or choose "
        "offload group-block."
    ),
    "blocks-on-stream": N_(
        "num_blocks_per_group {found} with use_stream on: diffusers streams single blocks only. Give 1, or turn "
        "use_stream off."
    ),
    "pinning-without-stream": N_(
        "low_cpu_mem_usage on with {other} {found}: without a stream nothing is pinned. Leave one of them out."
    ),
    "swap-with-offload": N_(
        "blocks_to_swap {asked} with {other} {found}: swapped blocks lie beside whole components. Leave one of them "
        "out; offload none and model go with it."
    ),
    "disk-with-torchao": N_(
        "offload_to_disk on with {scheme} for {component}: diffusers cannot write torchao's weights to a file. Leave "
        "it out, or choose another scheme."
    ),
    # quantization
    "quantization-of-fp32": N_(
        "quantization {scheme} for {component}: {kind} of {model} is loaded in float32, and schemes replace half "
        "precision weights. Allowed: none. Give it --dtype {component}=bfloat16, or leave the scheme out."
    ),
    "quantization-not-taken": N_(
        "quantization {scheme} for {component}: {kind} of {model} cannot take it. Allowed: {allowed}."
    ),
    "quantization-with-offload": N_(
        "quantization {scheme} for {component} with offload {offload}: bitsandbytes weights move as a whole component "
        "only. Choose offload {allowed}, or another scheme."
    ),
}
