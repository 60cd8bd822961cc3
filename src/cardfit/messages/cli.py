"""Sentences of the room `cli`: what can be wrong with a command line or a plan file, and the help texts."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "help-lang": N_("Every command takes --lang: {allowed}. CARDFIT_LANG does the same."),
    "bad-lang": N_("--lang {asked}: give one of: {allowed}"),
    "bad-option": N_("{problem} See: cardfit {command} --help"),
    "bad-dtype": N_(
        "--dtype {asked}: not a dtype. Give {allowed} for every component, or COMPONENT=DTYPE for one, as in "
        "--dtype vae=fp32"
    ),
    "bad-lora": N_(
        "--lora {asked}: give a rank or a safetensors file, then :fused, a dtype or :targets=NAME+NAME if you like: "
        "--lora 32, --lora 32:fused, --lora 32:float32, --lora style.safetensors"
    ),
    "bad-controlnet": N_(
        "--controlnet {asked}: give how many of the usual shape, a name, or layers: --controlnet 1, --controlnet "
        "union-pro, --controlnet num_layers=6:num_single_layers=0"
    ),
    "bad-quantization": N_(
        "--quantization {asked}: give COMPONENT=SCHEME, as in --quantization transformer=bnb-int8. "
        "Schemes: {allowed}"
    ),
    "bad-ram": N_("--ram {asked}: not a size. Give a number with a unit, as in --ram 64GB"),
    "bad-disk": N_("--disk {asked}: not a size. Give a number with a unit, as in --disk 200GB"),
    "bad-outputs": N_("--outputs {asked}: give outputs a month, as in --outputs 40/month"),
    "bad-together": N_("{one} and {other} ask for two different things; leave one out"),
    "saved": N_("saved: {file}"),
    "cannot-go-on": N_("the answer could not be written or read: {problem}"),
    "interrupted": N_("interrupted"),
    # help of options that are no field of the request or the settings
    "help-card": N_("only this card; can be repeated"),
    "help-ram": N_("host RAM of the machine, as in 64GB"),
    "help-lock": N_(
        "requirements.txt or lock file of what will run: other versions widen the band"
    ),
    "help-disk": N_("disk of the machine, as in 200GB"),
    "help-os": N_("operating system of the machine"),
    "help-here": N_("plan for the card and the RAM of this machine"),
    "help-machine": N_("plan for the machine that cardfit probe --json described in this file"),
    "help-cards-file": N_("CSV of your own cards; overrides or adds"),
    "help-offers-file": N_("CSV of your own offers; they come first"),
    "help-outputs": N_("accepted outputs a month, as in 40/month"),
    "help-hours": N_("hours a week that a monthly machine makes outputs"),
    "help-check": N_("exit with 1 when nothing that was asked fits"),
    "help-save": N_("write the request and the chosen settings to a YAML file"),
    "help-force": N_("write over a file that exists"),
    "help-as": N_(
        "code: the diffusers lines; line: one line to share; skypilot: a task that measures a sample; ssh: the same "
        "as a script for a host of your own"
    ),
    "help-all": N_("show every card"),
    "help-json": N_("print JSON"),
    "help-model": N_(
        "library entry, alias, repo id, diffusers folder, model file, or a YAML file from --save"
    ),
    "help-models": N_("library entries, aliases or repo ids; all when none is named"),
    "help-model-id": N_("library entry, alias or repo id; add: make an entry"),
    "help-models-source": N_("with add: a diffusers folder, or a repo id of the hub"),
    "help-models-new-id": N_(
        "with add: what to call it; the name of the folder or repo when left out"
    ),
    "help-models-output": N_("with add: where to write it; among your own entries when left out"),
    "models-two-names": N_(
        "{asked} after the name of a model: give one name, or make an entry with cardfit models add {asked}"
    ),
    "models-add-what": N_(
        "models add needs a diffusers folder or a repo id, as in cardfit models add ./my-pipeline"
    ),
    "help-card-id": N_("card id or name"),
    "help-task": N_("only models that do this"),
    "help-schema": N_("which schema"),
    "help-cardfit": N_(
        "Which GPU an exact diffusion pipeline needs, how it must be set and what it will cost."
    ),
    "help-dtype": N_("bf16, fp16 or fp32 for all, or COMPONENT=DTYPE; can be repeated"),
    "help-lora": N_(
        "an adapter laid over the denoiser, by its file or its rank: style.safetensors, 32, 32:fused, 32:float32 or "
        "32:targets=to_q+to_v; give the flag once for each"
    ),
    "help-controlnet": N_(
        "a network that reads a control picture at every step: how many of the usual shape, a name such as union-pro, "
        "or num_layers=N:num_single_layers=N; give the flag once for each"
    ),
    "bad-post": N_(
        "--post {asked}: give upscale=MODEL, then tile=N (pixels of its input) or factor=N if you like: "
        "--post upscale=realesrgan-x4plus,tile=512; or interpolate=MODEL,times=N: --post interpolate=rife-4.6,times=2. "
        "Models: {allowed}"
    ),
    "help-post": N_(
        "a step after the pipeline: upscale=MODEL,tile=N,factor=N or interpolate=MODEL,times=N; models: {allowed}; "
        "give the flag once for each"
    ),
    "help-quantization": N_("COMPONENT=SCHEME, schemes: {allowed}; can be repeated"),
}
