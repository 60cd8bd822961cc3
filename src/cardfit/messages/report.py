"""Sentences of the room `report`: headings, labels and remarks of the printed answers."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # headings
    "col-stage": N_("stage"),
    "col-weights": N_("weights"),
    "col-working": N_("working"),
    "col-allocator": N_("allocator"),
    "col-peak": N_("peak"),
    "col-band": N_("could be"),
    "col-at": N_("at"),
    "col-bar": N_("of {card}"),
    "col-card": N_("card"),
    "col-memory": N_("memory"),
    "col-verdict": N_("verdict"),
    "col-settings": N_("settings, or why not"),
    "col-limit": N_("peak / usable"),
    "col-time": N_("time"),
    "col-cost": N_("per output"),
    "col-price": N_("price"),
    "col-id": N_("id"),
    "col-title": N_("title"),
    "col-tasks": N_("tasks"),
    "col-size": N_("default size"),
    "col-license": N_("licence"),
    "col-verified": N_("verified"),
    "col-architecture": N_("architecture"),
    "col-bandwidth": N_("bandwidth"),
    "col-bf16": N_("bf16"),
    "col-provider": N_("provider"),
    "col-ram": N_("host RAM"),
    "col-age": N_("age"),
    "col-component": N_("component"),
    "col-calls": N_("calls"),
    "col-work": N_("work"),
    "col-model": N_("model"),
    "col-source": N_("source"),
    "col-settings-dtype": N_("dtype"),
    "col-fact": N_("fact"),
    "col-value": N_("value"),
    # header of a plan
    "frames-at": N_("{frames} frames, {seconds} at {fps} fps"),
    "frames": N_("{frames} frames"),
    "steps": N_("{steps} steps"),
    "batch": N_("batch of {batch}"),
    "recommended-dtypes": N_("recommended dtypes"),
    "basis-not-measured": N_("nothing measured yet, {basis}"),
    "license": N_("licence {license}"),
    "not-verified": N_("model facts not all verified"),
    # sums
    "all-resident": N_("everything resident {resident}"),
    "one-at-a-time": N_("one component at a time {peak} and {host} of host RAM"),
    "one-at-a-time-open": N_("one component at a time {peak}"),
    "rule-of-thumb": N_("rule of thumb (weights x 1.15) {all}"),
    "rule-of-denoiser": N_("for the denoiser alone {denoiser}"),
    # verdicts
    "verdict-fits": N_("fits"),
    "verdict-tight": N_("tight"),
    "verdict-spills": N_("spills"),
    "verdict-pages": N_("pages"),
    "verdict-does-not-fit": N_("does not fit"),
    "verdict-unknown": N_("unknown"),
    "price-slower": N_("slower"),
    "price-lossy": N_("lossy"),
    "price-more-ram": N_("more RAM"),
    # settings
    "set-nothing": N_("nothing to change"),
    "set-offload-model": N_("model offload"),
    "set-offload-group-block": N_("group offload by block"),
    "set-offload-group-leaf": N_("group offload by leaf"),
    "set-offload-sequential": N_("sequential offload"),
    "set-tiling": N_("VAE tiling"),
    "set-tiling-size": N_("VAE tiling {tile}"),
    "set-slicing": N_("VAE slicing"),
    "set-chunk": N_("{frames} frames per decode"),
    "set-quantized": N_("{component} {scheme}"),
    "set-attention": N_("{name} attention"),
    # offers
    "price-hour": N_("{money}/h"),
    "price-month": N_("{money}/mo"),
    "price-spot": N_("{price} spot"),
    "age-days": N_("{days} d"),
    "no-offer": N_("no offer"),
    # foot of a plan
    "more-rows": N_("... {count} more: --all"),
    "pick-cheapest": N_("Cheapest"),
    "pick-fastest": N_("Fastest"),
    "pick-safest": N_("Safest"),
    "pick-line": N_("{card}, {settings}: {why}"),
    "pick-none": N_("none to name"),
    "the-catch": N_("The catch"),
    "catch-tight": N_(
        "on the {card}, {stage} needs about {peak} of {usable} and may need more: it may fail there."
    ),
    "catch-nothing-fits": N_("No card of this list holds it in any setting that was tried."),
    "catch-figures": N_("The band is {low} to {high} where it is highest, in {stage}."),
    "do-this": N_("Do this"),
    "do-code": N_("the diffusers lines for these settings"),
    "do-save": N_("keep the request and the settings"),
    "do-all": N_("every card, with what stops the others"),
    "note": N_("Note"),
    # one line, code
    "line-none": N_("{what}: no card of the list holds it; {peak} with everything resident"),
    "line-pick": N_(
        "{what}: {peak} with everything resident, {stage} decides; cheapest {card} ({settings}{price})"
    ),
    "code-no-pick": N_(
        "no settings to write down: no card of the list holds {model}. "
        "See what stops them: cardfit plan {model} --all"
    ),
    "code-not-in-diffusers": N_(
        "{pipeline} is not part of diffusers, so there are no lines to print for {model}"
    ),
    # matrix
    "matrix-cell": N_("{shape} {precision} (rule {rule})"),
    "matrix-offload": N_("{precision}, offload"),
    "matrix-full": N_("full"),
    "matrix-8-bit": N_("8-bit"),
    "matrix-4-bit": N_("4-bit"),
    "matrix-none": N_("no"),
    "matrix-cheapest": N_("cheapest that holds it: {precision}"),
    "matrix-more": N_("{cards} cards; name some to see each: --card ID"),
    "matrix-legend": N_(
        "{fits} holds it, {price} slower or lossy, {tight} tight, {no} not even 4-bit, "
        "{unknown} facts missing. Rule: weights x 1.15."
    ),
    # trace
    "trace-total": N_("{flop} in all, {streams} distinct calls traced, {versions}"),
    "trace-stages": N_("stages: {stages}"),
    # lists
    "unknown-value": N_("unknown"),
    "yes": N_("yes"),
    "no": N_("no"),
    "nothing-listed": N_("nothing to list"),
}
