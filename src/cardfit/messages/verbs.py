"""Sentences of the room `verbs`: inverse questions, near misses, budgets, differences, rows for a README."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # a card that is nothing but a size
    "target-name": N_("{size}"),
    "target-is": N_(
        "The target is device memory with the CUDA context in it. A card sold with as much has somewhat less: --card "
        "says which."
    ),
    "target-too-small": N_(
        "The target must be more than the CUDA context takes ({least}). Say, for example, --target 24GB."
    ),
    "bad-target": N_(
        "--target {asked}: not a size. Give a number with a unit, as in --target 24GB"
    ),
    "help-target": N_(
        "device memory to stay within, context included, as in 24GB; without a card it is the card"
    ),
    # near misses
    "help-near-misses": N_(
        "for red and tight rows look for the nearest job that fits: fewer frames, smaller, another model (slow)"
    ),
    "nearest-num_frames": N_("{value} frames instead of {asked}"),
    "nearest-size": N_("{value} instead of {asked}"),
    "nearest-batch": N_("a batch of {value} instead of {asked}"),
    "nearest-model": N_("{value} instead of {asked}"),
    "nearest-fits": N_("{change} fits ({settings})."),
    "nearest": N_("{cure}{changes} Tried, one change at a time: {tried}."),
    "nearest-none": N_(
        "{cure}No smaller job fits with {settings} either. Tried, one change at a time: {tried}."
    ),
    "nearest-axis-num_frames": N_("frames down to {least}"),
    "nearest-axis-size": N_("sizes down to {least}"),
    "nearest-axis-batch": N_("batches down to {least}"),
    "nearest-looked": N_(
        "The nearest job that fits was looked for on: {cards}; rows left out: {others} (name them with --card). "
        "The library holds no few-step LoRAs, so none was tried."
    ),
    # largest
    "help-vary": N_("what is to be as large as it can be"),
    "help-most": N_("where to stop looking: frames, pixels of the longer side, or outputs"),
    "help-one-card": N_("the card it must run on"),
    "front-head": N_(
        "{title}: {kept} of {holding} ways that hold, on {cards} cards with {candidates} settings each; nothing beats "
        "these in price, seconds and quality at once"
    ),
    "front-none": N_(
        "{title}: none of {candidates} settings holds on {cards} cards with a known time. See cardfit plan --all."
    ),
    "front-progress": N_("memory replay: {settings}"),
    "front-untimed": N_("Left out, since their rates are not known: {cards}."),
    "front-unpriced": N_(
        "Left out, since they have no offer in the currency of the others: {cards}. Name your own with --offers-file."
    ),
    "front-col-quality": N_("picture"),
    "front-quality-full": N_("full"),
    "front-quality-tiled": N_("in tiles or chunks"),
    "front-quality-fewer-bits": N_("fewer bits"),
    "front-axis-cost": N_("cost of an output ({currency})"),
    "front-axis-seconds": N_("seconds of a run"),
    "front-chart-extra": N_(
        "A chart takes {package}, which is not installed: pip install 'cardfit[web]'. Without --chart the answer is "
        "the same."
    ),
    "help-front-chart": N_("draw price against seconds into this file: .html, .png or .svg"),
    "largest-needs-card": N_("Say what it must run on: --card rtx-4090, --target 24GB or --here."),
    "largest-several-cards": N_(
        "This machine has several kinds of cards: say which with --card ({cards})."
    ),
    "largest-bad-most": N_("--most {most}: it must be at least 1."),
    "largest-no-frames": N_(
        "{model} makes pictures, so there are no frames to vary. Take --vary size or --vary batch."
    ),
    "largest-one-size": N_(
        "{model} makes one size at this aspect ratio ({why}). Take --vary batch, or num_frames for a video."
    ),
    "largest-none-below": N_("No {vary} up to {most} is one that the model makes. Raise --most."),
    "largest-not-monotone": N_(
        "Larger is not always harder here: of two neighbours the larger one holds and the smaller one does not. The "
        "answer is the largest that was found to hold; see the values that were tried."
    ),
    "largest-no-end": N_(
        "{value} is the last value that was looked at, and it holds: the model's rules or --most end the search there, "
        "not the memory."
    ),
    "largest-progress": N_("value {count}: {what}"),
    "largest-fits": N_("Largest that fits"),
    "largest-tight": N_("Largest that is tight"),
    "largest-next": N_("The next, {value}"),
    "largest-none": N_("none of those tried, from {least} on"),
    "largest-same": N_("none beyond what fits"),
    "largest-line": N_("{value} with {settings}: {why}"),
    "largest-failed": N_("the dry run failed: {why}"),
    "largest-head": N_("{title} on {card}, varying {vary}, from {asked}"),
    "largest-vary-num_frames": N_("frames"),
    "largest-vary-size": N_("size"),
    "largest-vary-batch": N_("batch"),
    "largest-col-value": N_("tried"),
    "largest-col-peak": N_("peak"),
    "largest-col-stage": N_("decided in"),
    # one card for many requests
    "together-progress": N_("request {at} of {count}: {what}"),
    "together-title": N_("One card for all of them"),
    "together-fit": N_("{count} of {cards} cards fit every request."),
    "together-tight": N_("No card surely fits every request; {card} is tight (request {number})."),
    "together-none": N_("No card fits every request."),
    "together-no-offer": N_("None of them has an offer, so none is called the cheapest."),
    "together-hour": N_("Cheapest by the hour: {card}, {price} an hour at {provider}."),
    "together-list": N_(
        "Cheapest for the whole list: {card}, {cost} for about {seconds}, loading left out."
    ),
    # check
    "help-budget": N_("YAML file of requests with limits"),
    "help-junit": N_("write the verdict as JUnit XML"),
    "help-markdown": N_("write the verdict as a Markdown table"),
    "budget-not-a-mapping": N_(
        "{path}: found a {found}; it needs requests, and below it a list of requests with limits."
    ),
    "budget-no-list": N_("{path}: requests must be a list of requests with limits, and not empty."),
    "budget-too-many": N_("{path}: {found} requests; at most {allowed} are checked at once."),
    "budget-not-a-request": N_(
        "{where}found a {found}; it needs a model and a limit, as in {{model: svd, card: l4}}."
    ),
    "budget-bad-size": N_(
        "{where}max_peak is {asked}; give a number with a unit, as in max_peak: 24GB."
    ),
    "budget-no-limit": N_("{where}nothing to check: give card or max_peak."),
    "budget-needs-card": N_("{where}max_seconds and max_cost are those of a card: give card, too."),
    "check-progress": N_("request {at} of {count}: {what}"),
    "check-memory": N_("more than {limit} (with {settings}): {why}"),
    "check-tight": N_(
        "tight within {limit} (with {settings}): {why} With allow_tight: true that is good enough."
    ),
    "check-seconds": N_("likely {seconds} a run; the limit is {limit}."),
    "check-no-seconds": N_("no time can be told, and the limit is {limit}."),
    "check-cost": N_("{cost} an output; the limit is {limit}."),
    "check-no-cost": N_("no cost can be told (no offer, or no time), and the limit is {limit}."),
    "check-currency": N_(
        "{cost} an output; the limit is {limit}, another currency: nothing is converted."
    ),
    "check-kept": N_("ok"),
    "check-broken": N_("FAILED"),
    "check-all-kept": N_("All {count} keep their limits."),
    "check-some-broken": N_("{broken} of {count} break a limit."),
    "check-col-request": N_("request"),
    "check-col-peak": N_("device memory"),
    "check-col-cost": N_("cost"),
    "check-of": N_("{value} of {limit}"),
    # diff
    "help-answer": N_("JSON file of plan --json, or a YAML file of plan --save"),
    "answer-not-json": N_(
        "{path}: not JSON. Make one with: cardfit plan MODEL --json > answer.json"
    ),
    "answer-other-schema": N_(
        "{path}: schema {found}; an answer of plan is {wanted}. Make one with: cardfit plan MODEL --json > answer.json"
    ),
    "answer-damaged": N_(
        "{path}: {where} is missing or wrong. Another cardfit may have written it: make it again."
    ),
    "diff-same": N_("No difference."),
    "diff-peak": N_("peak"),
    "diff-moved": N_("{name} {change} ({before} to {after})"),
    "diff-only-before": N_("{name} is gone ({size})"),
    "diff-only-after": N_("{name} is new ({size})"),
    "diff-card": N_("{card}: {changes}"),
    "diff-card-after": N_("only in the second"),
    "diff-card-before": N_("only in the first"),
    "diff-was": N_("{before} to {after}"),
    "diff-field": N_("{name}: {before} to {after}"),
    "diff-versions": N_("Versions"),
    "diff-request": N_("Request"),
    "diff-settings": N_("Settings"),
    "diff-stages": N_("Stages"),
    "diff-cards": N_("Cards"),
    # readme
    "help-verify": N_(
        "compute the rows between the markers of this file again; exit with 1 when they moved"
    ),
    "help-readme-card": N_("the card that times the rows"),
    "readme-needs-one": N_(
        "Give a MODEL for rows to paste, or --verify FILE for a page that has them; not both."
    ),
    "readme-full": N_("full precision"),
    "readme-less": N_("less: {settings}"),
    "readme-least": N_("least: {settings}"),
    "readme-unknown": N_("unknown"),
    "readme-progress": N_("{row} {what}"),
    "readme-col-what": N_("setting"),
    "readme-col-size": N_("size"),
    "readme-col-frames": N_("frames"),
    "readme-col-device": N_("GPU memory"),
    "readme-col-host": N_("host RAM"),
    "readme-col-slowdown": N_("slowdown"),
    "readme-col-versions": N_("with"),
    "readme-col-command": N_("command"),
    "readme-timed-on": N_("The slowdown is that of predicted seconds on {card}."),
    "readme-no-card": N_(
        "No slowdown: no card that holds the first row has a time. Name one with --card."
    ),
    "readme-no-markers": N_(
        "{path}: no rows of cardfit. Paste what cardfit readme MODEL prints, its markers too."
    ),
    "readme-bad-marker": N_(
        "{path}, line {line}: the marker cannot be read. Make the rows again: cardfit readme MODEL"
    ),
    "readme-no-end": N_("{path}, line {line}: the rows have no end. Put {end} below them."),
    "readme-moved": N_("line {line}, {row}: {column} is {after} now, and the file says {before}."),
    "readme-versions": N_("line {line}: the rows were computed with other versions."),
    "readme-kept": N_("All rows still hold (blocks: {blocks})."),
}
