"""Sentences of the room `plan`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # settings in words
    "plan-as-is": N_("nothing to change"),
    "plan-offload-model": N_("model offload"),
    "plan-offload-group-block": N_("group offload by block"),
    "plan-offload-group-leaf": N_("group offload"),
    "plan-offload-group-leaf-alone": N_("group offload, streamed"),
    "plan-offload-sequential": N_("sequential offload"),
    "plan-tiling": N_("VAE tiling"),
    "plan-tiling-size": N_("VAE tiling {tile}"),
    "plan-slicing": N_("VAE slicing"),
    "plan-chunk": N_("{frames} frames per decode"),
    "plan-price-slower": N_("slower"),
    "plan-price-lossy": N_("lossy"),
    "plan-price-more_ram": N_("more RAM"),
    "plan-price-none": N_("at no cost"),
    # why a row has its verdict
    "plan-fits": N_("{stage} reserves {peak}, {high} at most; at least {usable_low} are usable."),
    "plan-tight": N_(
        "{stage} likely reserves {peak} of {usable} usable, but it may be {high}, and only "
        "{usable_low} are sure."
    ),
    "plan-tight-limit": N_(
        "{stage} fills the {usable} usable and gets through only because PyTorch frees its "
        "cache and tries again."
    ),
    "plan-spills": N_(
        "{stage} reserves {peak}, {over} more than the {usable} usable; Windows backs that with "
        "host memory, many times slower."
    ),
    "plan-over": N_("{stage} reserves {peak}, {over} too much."),
    "plan-over-host": N_("host RAM: needs {host}, {over} more than the {ram} there."),
    "plan-over-host-limit": N_(
        "host RAM: needs {host}, {over} more than the container's limit of {ram}."
    ),
    "plan-tight-host": N_(
        "{stage} fits, but host RAM may not: likely {host}, up to {host_high}, of {ram} there."
    ),
    "plan-tight-host-limit": N_(
        "{stage} fits, but host RAM may not: likely {host}, up to {host_high}, of the container's "
        "limit of {ram}."
    ),
    "plan-over-disk": N_("disk: needs {disk}, {over} more than the {room} there."),
    "plan-more-disk": N_(
        "With {disk} of disk it gets further; no setting makes the files smaller."
    ),
    "plan-offer-ram-unknown": N_("RAM unknown: needs {need}"),
    "plan-container-limit": N_(
        "This container may use {limit} of the machine's {ram} of RAM: the verdicts count with {limit}."
    ),
    "plan-here-disk": N_(
        "The files and outputs take {need} of disk, and {free} are free here. Fine if the model is "
        "downloaded already."
    ),
    "plan-quality-measured": N_(
        "The order of these lossy settings is by what your own records measured them to cost, in SSIM: {knobs}."
    ),
    "plan-over-post": N_("what comes after the pipeline takes {peak} of {usable}"),
    "plan-try-post-tile": N_("give the upscaler a tile, or a smaller one: upscale=MODEL,tile=256"),
    "plan-post-after": N_(
        "What comes after the pipeline is counted alone on the card: let the pipeline go first (del pipe, then "
        "torch.cuda.empty_cache()), or its weights count too. It is traced one frame at a time; "
        "--as code leaves it out."
    ),
    "plan-post-untiled": N_(
        "{model} takes whole frames: upscale=MODEL,tile=N makes its peak small and costs a few percent of its time."
    ),
    "plan-post-resize": N_(
        "A factor that is not the network's own is a resize on the host afterwards: memory and time are the network's."
    ),
    "plan-post-frames": N_(
        "{made} frames become {frames} after the pipeline: these are exported and held on the host."
    ),
    "plan-post-frames-fps": N_(
        "{made} frames become {frames} after the pipeline: these are exported and held on the host. At {fps} fps they "
        "play {seconds} s; export with a higher rate keeps the clip's length."
    ),
    "plan-post-unknown": N_(
        "What comes after the pipeline is not in these figures: tracing it needs {package}. "
        "Install it: pip install 'cardfit[trace]'"
    ),
    "plan-no-encoder": N_(
        "No {codec} encoder on {cards}: there the export fails after the sampling. Export on the processor instead, "
        "--export {codec}: about {seconds} for {frames} frames."
    ),
    "plan-encoder-unknown": N_(
        "Nobody has said whether {cards} encode {codec}: cardfit codecs tries it on the machine."
    ),
    "plan-export-image": N_(
        "--export {codec} is for videos, and this makes a picture: it was left out."
    ),
    "plan-export-small": N_(
        "Exporting on the processor takes about {seconds}, {percent} % of the shortest run here: an encoder on the "
        "card would save nothing worth having."
    ),
    "plan-export-matters": N_(
        "Exporting on the processor takes about {seconds}, {percent} % of the shortest run here: an encoder on the "
        "card (nvenc-{codec}) is worth having, or export while the next output is sampled."
    ),
    "plan-bnb-version": N_(
        "Model offload of 8-bit weights needs bitsandbytes 0.48 and transformers 4.58 or later: with "
        "older ones diffusers leaves those components on the card throughout."
    ),
    "plan-second-copy": N_(
        "On Windows without symbolic links the hub's cache keeps a file once for every revision "
        "that was downloaded: up to {more} more on disk after an update of the model."
    ),
    "plan-swap": N_("{count} blocks swapped"),
    "plan-group-unstreamed": N_("no stream"),
    "plan-group-blocks": N_("{count} blocks a group"),
    "plan-group-low": N_("pinned while copying"),
    "plan-group-disk": N_("weights on disk"),
    "plan-bad-disk": N_(
        "{disk} bytes of disk: it must be above zero. Say, for example, --disk 200GB."
    ),
    "plan-no-streams": N_(
        "use_stream with {card}: streams of group offload are modelled for CUDA only, and it is no NVIDIA card. "
        "Leave use_stream out or turn it off, or name another card."
    ),
    "plan-no-bfloat16": N_("no bfloat16 before Ampere (compute capability 8.0)."),
    "plan-no-flash": N_("no FlashAttention before Ampere (compute capability 8.0)."),
    "plan-try-sdpa": N_("Leave attention out: torch takes the memory-efficient kernel there."),
    "plan-attention": N_("{kernel} attention"),
    "plan-embeds": N_("prompt embeddings given"),
    "plan-forward-chunks": N_("feed-forward in chunks of {tokens} tokens"),
    "plan-fuse-qkv": N_("fused projections"),
    "plan-no-facts": N_("the card's usable memory is not known."),
    # what would cure a red row
    "plan-fits-would": N_("would fit"),
    "plan-tight-would": N_("would just fit"),
    "plan-cure": N_("With {settings} it {verdict} ({prices})."),
    "plan-cure-ram": N_("With {host} of host RAM and {settings} it {verdict} ({prices})."),
    "plan-short-video": N_("Even with {settings}. Ask for fewer frames or a smaller size."),
    "plan-short-image": N_("Even with {settings}. Ask for a smaller size or batch."),
    "plan-try-float16": N_("Try --dtype float16, if the model does not overflow in it."),
    # picks
    "plan-cheapest-hour": N_("{price} an hour at {provider}, the lowest of all that fit"),
    "plan-cheapest-bill": N_(
        "{each} an output at {provider}, {total} for {count} accepted ones, the lowest of all that fit"
    ),
    "plan-cheapest-bill-spot": N_(
        "{each} an output at {provider}, {total} for {count} accepted ones, while nobody takes it away (spot)"
    ),
    "plan-cheapest-month": N_(
        "{price} a month at {provider}, {hour} an hour over 730 hours, the lowest of all that fit"
    ),
    "plan-cheapest-spot": N_("{price} an hour at {provider} while nobody takes it away (spot)"),
    "plan-safest": N_("{headroom} to spare at full precision"),
    "plan-safest-less": N_(
        "{headroom} to spare at full precision, the most of all, and less than a tenth"
    ),
    "plan-no-seconds": N_("No fastest card is named: for none that fits can the time be told."),
    "plan-fastest": N_("about {seconds} a run ({low} to {high}), the least of all that fit"),
    "plan-time-basis": N_(
        "Seconds rest on published times of {rows} runs; a model not among them was missed by {median} % in the "
        "median. Not counted: {names}."
    ),
    "plan-throughput": N_(
        "{card}: about {hour} outputs an hour, {day} a day, run and export in turn; {beside} an hour with the export "
        "on the host's threads beside the next run."
    ),
    "plan-throughput-nvenc": N_(
        "With the card's own encoder {card} makes at most {most} an hour, the rate of its runs: nobody has published "
        "how many frames a second it encodes beside them, so none is assumed. cardfit codecs measures it on the card."
    ),
    "plan-batch-helps": N_(
        "{card} has {spare} to spare and does not wait for arithmetic: a larger batch makes more in the same time."
    ),
    "plan-batch-no-faster": N_(
        "{card} has {spare} to spare, but its arithmetic is what takes the time: a larger batch makes no more an hour."
    ),
    "plan-demand-one": N_("{outputs} outputs a month take one {card} {hours} hours."),
    "plan-demand-many": N_(
        "{outputs} outputs a month take {hours} hours of {card}: {count} cards side by side. Their memory does not "
        "add up: each must hold the whole run."
    ),
    "plan-outputs-no-seconds": N_(
        "{outputs} outputs a month: no time can be told for a card that fits, so neither cards nor cost are named."
    ),
    "plan-nothing-fits": N_("No card of the list surely holds it, so none is recommended."),
    "plan-no-offer": N_("No card that fits has an offer, so there is no cheapest one."),
    "plan-none-full": N_("No card holds it at full precision, so none is called the safest."),
    # what is being done
    "plan-progress-trace": N_("dry run: {what}"),
    "plan-progress-replay": N_("memory, replay {count} ({settings}): card {at} of {cards}"),
    # notes
    "plan-catch-decode": N_(
        "Decode comes last and needs {decode} on the {card}, more than denoising ({denoise}): if it "
        "fails, every step was for nothing. Save latents first."
    ),
    "plan-catch-decode-tiling": N_(
        "Decode comes last and needs {decode} on the {card}, more than denoising ({denoise}): if it "
        "fails, every step was for nothing. Save latents first, or add --vae-tiling."
    ),
    "plan-catch-ram": N_(
        "The {card} needs {need} of host RAM beside it for these settings, and its offer does not "
        "say how much there is: ask before renting."
    ),
    "plan-prompt-grows": N_(
        "The text encoder of {model} does not pad its prompts: a longer prompt than {tokens} tokens "
        "raises the peak (--prompt-tokens)."
    ),
    "plan-comfyui": N_(
        "These are diffusers figures. ComfyUI pages weights in and out of the card by itself, so "
        "a card that does not fit here may run there, slower."
    ),
    "plan-monthly": N_(
        "Monthly prices are compared with hourly ones as a month of 730 hours, rented throughout."
    ),
    "plan-currencies": N_(
        "Offers are in {currencies}; only those in {currency} are compared, nothing is converted."
    ),
    "plan-no-currency-match": N_("No card that fits has an offer in {currency}."),
    "plan-ram-unknown": N_(
        "Offload takes up to {need} of host RAM, and nobody says how much the machines of the cards "
        "that need it have (cards: {count})."
    ),
    "plan-left-out": N_("Not counted: {names}."),
    # matrix
    "plan-cell-holds": N_("{precision}{offload}: {headroom} to spare"),
    "plan-cell-tight": N_("{precision}{offload}: tight, {headroom} to spare"),
    "plan-cell-over": N_("{precision}{offload}: {over} short in {stage}"),
    "plan-precision-full": N_("full precision"),
    "plan-precision-8-bit": N_("8 bits"),
    "plan-precision-4-bit": N_("4 bits"),
    "plan-with-offload": N_(", model offload"),
    "plan-matrix-defaults": N_(
        "Each model at its own default size, no VAE tiling; offload means model offload."
    ),
    "plan-matrix-rule": N_(
        "The rule is weights x 1.15 against the memory on the box; 8 bits halve it, 4 bits "
        "quarter it."
    ),
    "plan-matrix-failed": N_("{model} is left out: {reason}"),
    # input
    "machine-bad-file": N_(
        "{path}: {where}: {why}. Make one there with: cardfit probe --json > machine.json"
    ),
    "machine-no-card": N_(
        "The machine in the file has no NVIDIA card that could be read. Probe it again with its driver running, or "
        "name a card with --card"
    ),
    "machine-other-schema": N_(
        "{path}: schema {found}; a machine is {wanted}. Make one there with: cardfit probe --json > machine.json"
    ),
    "plan-bad-outputs": N_("{outputs} outputs a month: it must be a number above zero."),
    "plan-bad-hours": N_("{hours} hours a week: it must be above zero and at most {most}."),
    "plan-bad-ram": N_("{ram} bytes of RAM: it must be above zero. Say, for example, --ram 64GB."),
    "plan-needs-trace": N_(
        "A dry run needs {package}, which is not installed. Install it: pip install "
        "'cardfit[trace]'"
    ),
    # cost
    "plan-download": N_("The files are {size}: {seconds} to download at {rate}."),
    "plan-download-assumed": N_(
        "The files are {size}: {seconds} to download at {rate}, a rate that was assumed; --down gives another."
    ),
    "cost-daily": N_("This machine costs {money} a day while it exists."),
    "cost-matters": N_(
        "Of the two, tensor throughput per price matters here: diffusion is bound by tensor throughput, unlike "
        "LLM decoding, which is bound by bandwidth, except when small models run in small batches. GB/s /1 "
        "and TFLOP/s /1 are what one unit of the price buys for an hour; balance is the FLOPs per byte from which "
        "arithmetic is the limit. cardfit cards --model MODEL says it for a model."
    ),
    "cost-matters-here": N_(
        "This work makes {intensity} FLOPs per byte that it moves: above the balance of {bound} of {known} cards, "
        "where tensor throughput per price matters; on the others bandwidth per price does."
    ),
}
