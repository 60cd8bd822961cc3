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
        "{side} becomes {becomes} for this model: it makes multiples of {multiple} a side, so {asked} is made as "
        "{made}"
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
        "compile: what compiled kernels and CUDA graphs take is not known; the figures are those of the eager run, "
        "and graphs keep memory of their own beside them"
    ),
    "no-decode-chunk": N_(
        "decode_chunk_size: {pipeline} ({model}) has no such argument; only svd, svd-xt and animatediff-sd1.5 take "
        "it. Try vae_tiling."
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
    # folders and repos
    "folder-none": N_("{folder} is not there ({why}). Give the folder of a diffusers pipeline."),
    "folder-not-diffusers": N_(
        "{folder} has no {file} ({why}). A diffusers folder holds model_index.json and a folder a component"
    ),
    "folder-bad-config": N_(
        "{folder}: {file} is not a JSON object as it should be, or far too large"
    ),
    "folder-foreign-code": N_(
        "{folder}: {component} comes from {library}. Only classes of diffusers and transformers are loaded; "
        "code that lies in a folder never runs"
    ),
    "hub-no-repo": N_(
        "{repo}: no such folder here and no such repo on the hub, or none that your token may read. {suggestion}Give "
        "a folder, or a repo id as in black-forest-labs/FLUX.1-dev. List known models: cardfit models"
    ),
    "hub-gated": N_(
        "{repo} is gated: accept its terms on its page, then log in (hf auth login) or set HF_TOKEN. A local folder "
        "with its configs does as well."
    ),
    "hub-offline": N_(
        "{repo}: HF_HUB_OFFLINE is set and the hub's cache does not hold its configs. {suggestion}Go online once, or "
        "give a local folder. List known models: cardfit models"
    ),
    "hub-not-fetched": N_(
        "{repo} could not be fetched from the hub: {why}. {suggestion}Try again online, or give a local folder."
    ),
    "hub-needs-package": N_(
        "Reading a repo of the hub needs {package}, which is not installed. Install it: pip install 'cardfit[trace]'. "
        "List known models: cardfit models"
    ),
    "hub-header-too-large": N_(
        "{file}: the header takes more than the {limit} bytes that are read of one component. Download it and give "
        "the folder."
    ),
    "hub-no-ranges": N_(
        "{file}: the hub sent the whole file instead of its beginning. Give a local folder."
    ),
    # headers
    "header-not-read": N_("{path}: cannot be read ({why}). Check the path."),
    "header-bad": N_(
        "{path}: no safetensors or GGUF header that could be true. Download it again."
    ),
    "header-cut-off": N_(
        "{path}: its header promises {promised} of weights and {found} are there. Download the rest of it."
    ),
    "header-pickle": N_(
        "{path}: a pickle, or a ZIP file of pickles. They can run code and are never loaded. Take the safetensors "
        "file, or convert it once in an environment you trust."
    ),
    # what is not in the library
    "source-none": N_("{source}: no such file or folder. List known models: cardfit models"),
    "source-needs-trace": N_(
        "{source} differs from every entry of the library, so its parts have to be built, which needs {package}. "
        "Install it: pip install 'cardfit[trace]'"
    ),
    "source-custom-pipeline": N_(
        "{source}: model_index.json names a pipeline of its own ({found}). Code that lies in a folder or repo never "
        "runs; name a pipeline class of diffusers."
    ),
    "source-auto-map": N_(
        "{source}: the config of {component} names code of its own (auto_map), which never runs. Where the class in "
        "model_index.json is the one that runs, take auto_map out of the config."
    ),
    "source-no-pipeline": N_(
        "{source}: diffusers {version} has no pipeline class {pipeline}. Install a diffusers that has it, or correct "
        "_class_name in model_index.json."
    ),
    "source-no-parts": N_("{source}: model_index.json names no component with weights."),
    "source-not-built": N_(
        "{source}: {kind} cannot be built from the config of {component}: {why}. Compare it with the config.json that "
        "save_pretrained writes."
    ),
    "source-config-size": N_(
        "{source}: the config of {component} has {key} {found}; up to {allowed} are taken. Correct the config."
    ),
    "source-adapter": N_(
        "{source}: an adapter, no model. Name the model that it is laid over and give its rank: --lora RANK"
    ),
    "source-no-model": N_(
        "{source}: {count} weights, mostly {precision}, architecture {architecture}: no denoiser of the library has "
        "as many. Give the model's diffusers folder or repo instead."
    ),
    "source-several": N_(
        "{source}: {count} weights, mostly {precision}: several denoisers of the library have about as many "
        "({models}). Name the model, and the scheme with --quantization."
    ),
    "source-fp4": N_(
        "{source}: the weights of {component} are stored as fp4, which diffusers cannot load from a file. Plan the "
        "workflow that loads it (cardfit plan WORKFLOW.json), or {model} with --quantization "
        "{component}=svdq-nvfp4, which takes about as much memory."
    ),
    # notes of an answer
    "source-is-entry": N_(
        "{source} is {model} of the library: the same {pipeline}, classes and configs, so what is known of it holds"
    ),
    "source-rules": N_(
        "{source} is not in the library: its own configs, and sizes, frames and defaults of {model}, which is a "
        "{pipeline} too"
    ),
    "source-general": N_(
        "{source}: no library entry is a {pipeline}. Task and defaults are those of its call; which sizes and frames "
        "it rounds or refuses is not known beforehand"
    ),
    "source-count-differs": N_(
        "{source}: the files of {component} hold {held} weights and its config makes {built}: one of them is not what "
        "will run"
    ),
    "source-left-out": N_("not counted: {parts}"),
    "source-pickles": N_("{parts}: weights lie there as pickles, which are never read"),
    "source-no-weights": N_(
        "{source}: no weights were seen of some components, so their dtypes rest on configs or on models alike: "
        "{dtypes}"
    ),
    "source-file": N_(
        "{source} is a variant of {model}: its denoiser has {count} weights, as many. It holds {parts}"
    ),
    "source-file-others": N_("{parts}: not in the file, so as {model} has them"),
    "source-file-schemes": N_(
        "the weights of {source} are stored quantized; counted as {schemes}, unless --quantization says otherwise"
    ),
    # words of an entry that was made from what was found
    "source-not-stated": N_("not stated"),
    "source-not-known": N_("not known: no library entry has this pipeline class"),
    "source-from-headers": N_("headers of the safetensors files"),
    "source-from-config": N_("config.json"),
    "source-no-dtype": N_("not stated; as models alike"),
    "source-no-count": N_("no weights seen"),
    # entries of the reader's own
    "own-mark": N_("own"),
    "own-entry": N_("{model} is an entry of your own ({file}), not the library's"),
    "own-bad": N_(
        "{file}: not a model entry: {field} {why}. Correct the file, write it anew with cardfit models add, or remove "
        "it."
    ),
    "own-other-id": N_("{file}: the entry inside is called {found}. Name the file after it."),
    "own-not-a-folder": N_(
        "{source}: a library entry is made from a diffusers folder or a repo of the hub. Give one with "
        "model_index.json."
    ),
    "own-bad-id": N_(
        "{asked}: an id is made of a-z, 0-9, dot, dash and underscore. Give one with --id"
    ),
    "own-taken-id": N_("{asked}: the library has a model of this name. Give another one with --id"),
}
