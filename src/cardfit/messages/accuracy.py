"""Sentences of the room `accuracy`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "help-measured": N_(
        "CSV of published measurements, with the header of benchmarks/data/measured.csv"
    ),
    "accuracy-col-kind": N_("figure"),
    "accuracy-col-rows": N_("rows"),
    "accuracy-col-median": N_("median"),
    "accuracy-col-p90": N_("90 % within"),
    "accuracy-col-worst": N_("worst"),
    "accuracy-col-measured": N_("measured"),
    "accuracy-col-predicted": N_("predicted"),
    "accuracy-col-error": N_("error"),
    "accuracy-col-family": N_("family"),
    "accuracy-col-why": N_("not scored because"),
    "accuracy-kind-allocated": N_("allocated"),
    "accuracy-kind-reserved": N_("reserved"),
    "accuracy-kind-device": N_("whole card"),
    "accuracy-kind-unnamed": N_("kind not named"),
    "accuracy-kind-rule": N_("rule of thumb: weights x 1.15"),
    "accuracy-kind-weights_only": N_("weights only"),
    "accuracy-kind-comfyui": N_("ComfyUI's formula over our weights"),
    "accuracy-kind-invokeai": N_("InvokeAI's linear rule"),
    "accuracy-col-group": N_("from"),
    "accuracy-col-low": N_("below"),
    "accuracy-col-high": N_("above"),
    "accuracy-col-held": N_("held out"),
    "accuracy-col-sources": N_("sources"),
    "accuracy-col-band": N_("band"),
    "accuracy-scored": N_("{scored} rows scored, {skipped} not; sizes in {unit}"),
    "accuracy-needs-trace": N_(
        "Scoring published rows runs their pipelines without weights, which needs the package "
        "{package}. Install torch and then: pip install 'cardfit[trace]'"
    ),
    "accuracy-bad-value": N_(
        'row {row} ({id}), column {column}: "{found}" cannot be read; skipped'
    ),
    "accuracy-why-out_of_memory_row": N_("the run ended out of memory: it has no peak"),
    "accuracy-why-multi_gpu": N_("several cards"),
    "accuracy-why-other_runtime": N_("a program other than diffusers"),
    "accuracy-why-no_peak": N_("no memory figure"),
    "accuracy-why-no_size": N_("width, height or frames not stated"),
    "accuracy-why-model_unknown": N_("a model that the library does not hold"),
    "accuracy-why-scheme_unknown": N_("a precision or quantization without a rule"),
    "accuracy-why-offload_unknown": N_("an offload mode that is not stated or has no rule"),
    "accuracy-why-load_peak": N_("the figure is the peak of loading"),
    "accuracy-why-tile_unknown": N_("tiled at a size that the source does not state"),
    "accuracy-why-suspect": N_("the source itself doubts the figure"),
    "accuracy-why-bad_value": N_("a number or unit that cannot be read"),
    "accuracy-why-scope_unknown": N_("what was measured is not stated, or is no peak"),
    "accuracy-why-dry_run_failed": N_("the pipeline refused the request or stopped"),
    "accuracy-bad-versions": N_(
        "{file} is no file of kept traces ({found}). Make it anew with make accuracy VERSIONS=..., or move it away."
    ),
    "accuracy-old-layout": N_(
        "{file} names traces of layout {found}; this cardfit reads layout {needed}. "
        'Make them anew with make accuracy VERSIONS="{versions}".'
    ),
    "accuracy-matching": N_("rows whose diffusers is that of their time"),
    "accuracy-other-versions": N_(
        "traced with diffusers {installed}, though their time had another: {rows}"
    ),
    "accuracy-no-time": N_(
        "traced with diffusers {installed}; they tell neither a version nor a day: {rows}"
    ),
    "accuracy-why-setting_unknown": N_("a setting without a rule"),
    "help-accuracy-field": N_(
        "CSV of what people ran and what happened, with the header of benchmarks/data/field_oom.csv"
    ),
    "accuracy-one-file": N_(
        "accuracy was given {given} files. Name one: FILE holds measurements, --field FILE what people ran, "
        "--times FILE published times."
    ),
    "accuracy-why-script_unknown": N_("a maker's own script whose habits are not known"),
    "accuracy-why-part_only": N_("a part of a pipeline alone"),
    "accuracy-why-no_card": N_("the card or its memory not stated"),
    "accuracy-why-card_unknown": N_("a card whose memory rules nobody has checked"),
    "accuracy-why-no_host_ram": N_("ran out of host RAM, and how much there was is not stated"),
    "accuracy-why-other_outcome": N_("ended in something other than memory"),
    "accuracy-field-scored": N_("{scored} cases scored, {skipped} not; sizes in {unit}"),
    "accuracy-field-full": N_("complete"),
    "accuracy-field-partial": N_("partial"),
    "accuracy-field-col-group": N_("configuration"),
    "accuracy-field-col-cases": N_("cases"),
    "accuracy-field-col-right": N_("right"),
    "accuracy-field-col-false-fits": N_("false fits"),
    "accuracy-field-col-false-misses": N_("false misses"),
    "accuracy-field-col-tight": N_("tight"),
    "accuracy-field-col-stage-right": N_("stage right"),
    "accuracy-field-col-outcome": N_("happened"),
    "accuracy-field-col-verdict": N_("predicted"),
    "accuracy-field-col-peak": N_("peak"),
    "accuracy-field-col-usable": N_("usable"),
    "accuracy-field-col-stage": N_("stage"),
    "accuracy-field-ok": N_("ran"),
    "accuracy-field-slow": N_("ran slowly"),
    "accuracy-field-oom": N_("out of memory"),
    "accuracy-field-host_oom": N_("out of host RAM"),
    "help-accuracy-times": N_(
        "CSV of published times, with the header of benchmarks/data/times.csv"
    ),
    "accuracy-why-no_steps": N_("steps not stated"),
    "accuracy-why-rate_unknown": N_("a card or scheme whose seconds cannot be said"),
    "accuracy-why-attention_unknown": N_("attention kernels or caches of another package"),
    "accuracy-times-scored": N_("{scored} times scored, {skipped} not"),
    "accuracy-times-time": N_("seconds"),
    "accuracy-times-after_one_record": N_("after one record"),
    "accuracy-times-held_out": N_("families the fit had not seen"),
    "accuracy-times-order": N_(
        "Cards in order for {right} of {pairs} pairs on the same work that differ by more than a tenth; {inside} of "
        "the rows lie in their band."
    ),
    "accuracy-times-col-card": N_("card"),
    "accuracy-times-col-framework": N_("program"),
}
