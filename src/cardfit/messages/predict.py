"""Sentences of the room `predict`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "calibration-bad": N_(
        "{path} is no calibration ({why}). Make it anew with cardfit calibrate, or delete it"
    ),
    "plan-calibrated": N_(
        "times on {card} rest on {n} own runs: {factor:.2f} times what published times say"
    ),
    # PYTORCH_CUDA_ALLOC_CONF
    "alloc-conf-unknown": N_(
        "alloc_conf: {asked} is no setting that is modelled. Known: {allowed}. Write KEY:VALUE, several with "
        "commas between, or leave it out."
    ),
    "alloc-conf-twice": N_("alloc_conf: {key} stands twice. Keep one."),
    "alloc-conf-value": N_("alloc_conf: {key} is {found}; allowed: {allowed}"),
    # where a run ends
    "predict-out-of-memory": N_(
        "Would fail in {stage}: tried to allocate {tried} at {site}, with {allocated} allocated and "
        "{unused} reserved but unused, of {limit} that the process may reserve."
    ),
    "predict-fragmented": N_(
        "The {unused} that are reserved but unused would hold it, were they in one piece: try "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
    ),
    "predict-expandable-helps": N_(
        "With PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True it gets through, reserving {reserved}."
    ),
    # a file of requests
    "requests-empty": N_("{path}: empty. It needs a list requests, and in it at least a model."),
    "requests-not-a-mapping": N_(
        "{path}: found {found}, needs the keys requests and, if you like, settings, shuffle, keep, empty_cache."
    ),
    "requests-no-list": N_(
        "{path}: requests is missing, empty or no list. Write requests: and below it lines such as "
        "- {{model: flux.1-dev, count: 3}}"
    ),
    "requests-not-a-request": N_("{where}found {found}, needs a model or the fields of a request"),
    "requests-too-many": N_(
        "{path}: {found} requests; at most {allowed} are replayed. Lower a count."
    ),
    # a sequence
    "sequence-progress": N_("request {at} of {count}"),
    "sequence-not-all": N_(
        "Only the first {done} of {count} requests were replayed: the cache is laid out anew with every request, and "
        "{most} replays are the most. Later ones may reserve more."
    ),
    "sequence-fits": N_(
        "Reserves {peak} at the worst, {high} at most; at least {usable_low} are usable."
    ),
    "sequence-tight": N_(
        "Reserves {peak} of {usable} usable at the worst, but it may be {high}, and only {usable_low} are sure."
    ),
    "sequence-tight-limit": N_(
        "Would reserve {peak}; gets through with {usable} only because PyTorch frees its cache and tries again."
    ),
    "sequence-fails": N_("Ends at request {position} of {count}: {usable} are usable."),
    "sequence-worst": N_(
        "{count} requests in one process reserve {peak} at the worst ({low}..{high}), from request {position} on: "
        "number {number}, {stage}. Alone none takes more than {alone}."
    ),
    "sequence-before": N_("kept from before"),
    "sequence-col-request": N_("request"),
    "sequence-col-count": N_("times"),
    "sequence-col-alone": N_("alone"),
    "sequence-col-worst": N_("worst"),
    "sequence-col-position": N_("at"),
    "sequence-needs-file": N_("--sequence needs a file of requests. Add --requests FILE."),
    "plan-needs-model": N_(
        "nothing to plan: give MODEL (see cardfit models), a YAML file of one request, or --requests FILE"
    ),
    "help-requests": N_("YAML file of several requests: one line each, or with --sequence"),
    "help-sequence": N_("with --requests: all in one process, one after another"),
    # block swap
    "swap-no-blocks": N_(
        "blocks_to_swap {asked}: {component} ({kind}) has no list of blocks to swap. Leave it out, or try offload "
        "group-leaf."
    ),
    "swap-too-many": N_(
        "blocks_to_swap {asked}: {component} has {allowed} blocks. Give a number up to {allowed}."
    ),
    # seconds
    "time-vendor": N_(
        "{card}: seconds are fitted on NVIDIA cards; for others there are no factors. Measure one run and give it."
    ),
    "time-rate-unknown": N_(
        "{card}: its tensor rate or bandwidth is not known, so seconds cannot be said. Add them in a cards file."
    ),
    "time-no-bf16": N_(
        "{card} has no bf16 in hardware: torch emulates it, many times slower. Ask again with --dtype float16."
    ),
    "time-scheme-unknown": N_(
        "Nobody published what {scheme} costs in time ({how}), so seconds cannot be said. Measure one run."
    ),
    "time-link-unknown": N_(
        "{card}: its link is not known, so what offload waits for cannot be said. Give the link's rate."
    ),
    "time-load-unknown": N_(
        "Loading is not counted: the disk's rate is not known. It comes before the first run only."
    ),
    "time-unfitted": N_(
        "No published time of a card like {card} ({architecture}): factors of other generations, a wider band."
    ),
}
