"""Sentences of the room `script`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # the file
    "script-not-python": N_("{path}, line {line}: not Python ({why}). Check the file."),
    "script-not-text": N_("{path}: not a Python text ({why}). Check the file."),
    "script-nested": N_("{path}: nested too deeply to be followed. Nothing was read."),
    "script-too-much": N_(
        "{path}, line {line}: more than {limit} steps to follow. Give the part that loads and calls the pipeline."
    ),
    "script-no-models": N_(
        "{path}: --models is for ComfyUI workflows. Leave it out, or name a workflow."
    ),
    # answers
    "script-answer-form": N_("--set {answer}: give name=value, as in --set height=720."),
    "script-answer-bad": N_("--set {answer}: {found} is no number, truth value or text."),
    "script-answer-number": N_("--set {answer}: found {found}, needs a number of 0 or more."),
    "script-answer-unused": N_("--set {answer}: nothing asks for it. Asked for: {asked}."),
    # questions
    "script-ask-picture": N_("comes from the input picture, whose size is not in the script"),
    "script-ask-outside": N_("comes from {what}, which is not run"),
    "script-ask-undefined": N_("{what} is not defined in the file"),
    "script-ask-branch": N_("whether this holds is not known: {what}"),
    "script-ask-argument": N_("{what} is given from outside and has no default"),
    "script-ask-choice": N_("is given from outside and has no default; one of: {what}"),
    "script-ask-turn": N_("{what} differs from turn to turn of a loop"),
    "script-ask-default": N_("the call does not say it, and the default of {what} is not known"),
    "script-ask-model": N_("the library has no entry for {what}; near it: {near}"),
    "script-ask-model-plain": N_("the library has no entry for {what}"),
    "script-ask-decides": N_("decides over {what}: {why}"),
    # what is read and cannot be planned as written
    "script-not-modelled": N_("line {line}: {what} is not modelled"),
    "script-open-arguments": N_(
        "line {line}: further arguments come from outside and are not known"
    ),
    "script-other-pipeline": N_("line {line}: {what} is planned as {taken}"),
    "script-other-class": N_("line {line}: {what} is counted as {taken}"),
    "script-length": N_(
        "line {line}: max_sequence_length {asked} is not modelled; the model's {taken} is taken"
    ),
    "script-lora-rank": N_(
        "line {line}: LoRA {what} is not counted, its rank is not in the script; --set lora_rank=N counts it"
    ),
    "script-tile-sides": N_(
        "line {line}: tiles of {sides} are counted as squares of the smaller side"
    ),
    "script-autocast": N_(
        "line {line}: autocast to {dtype} is not modelled; weights count as loaded"
    ),
    "script-groups": N_(
        "line {line}: one group offload is planned for all components; these have another or none: {names}"
    ),
    "script-scheduler": N_(
        "line {line}: {what} calls the model twice a step, which is not modelled"
    ),
    "script-left-out": N_("line {line}: {what} is left out by the script and counted all the same"),
    "script-component": N_("line {line}: {what} is not in the library's entry and not counted"),
    "script-bad-setting": N_("line {line}: left out, since no plan can have it: {why}"),
    # remarks
    "script-default-dtype": N_("line {line}: no dtype is said, so weights load in {dtype}"),
    "script-no-device": N_(
        "line {line}: nothing moves the pipeline to a card; as written it runs on the CPU"
    ),
    "script-no-negative": N_("line {line}: {name} does nothing without a negative prompt"),
    "script-warm-up": N_("line {line}: a warm-up whose output is not used; left out"),
    "script-helper": N_("line {line}: the call of {what} is not counted"),
    "script-assumed": N_("line {line}: taken as on a usual machine with a card: {what}"),
    "script-many": N_("{found} calls of pipelines; the first {limit} were read"),
    "script-no-call": N_("No call of a diffusers pipeline was found in the file."),
    # the plan
    "script-incomplete": N_(
        "Not planned: model, size, frames, steps or batch are open. Answer the questions with --set."
    ),
    "script-not-planned": N_("Not planned: {reason}"),
    "script-which": N_("{path}: {count} requests. Say which with --request N, from 1 to {count}."),
    # the command
    "help-read-file": N_("a Python script that uses diffusers, or a ComfyUI workflow"),
    "help-read-set": N_("what the file does not say, as name=value; can be repeated"),
    "help-read-image": N_("a picture of the size that the script or workflow will load"),
    "help-read-output": N_("write the request to a YAML file that plan takes"),
    "help-read-request": N_("which request to write, where the script makes several"),
    # the page
    "script-request": N_("Request {at} of {of}: {pipeline} {repo}, line {line}"),
    "script-times": N_("{count} times"),
    "script-times-open": N_("an unknown number of times"),
    "script-origin": N_("{name} {value}: {where}"),
    "script-where-script": N_("line {lines}"),
    "script-where-signature": N_("default of the call (line {lines})"),
    "script-where-model": N_("the model's own"),
    "script-where-answer": N_("as you said"),
    "script-where-assumed": N_("taken so (line {lines})"),
    "script-questions": N_("The script does not say:"),
    "script-missing": N_("line {line}: {input}: {why}; say --set {input}=..."),
    "script-how-to-answer": N_(
        "Answer with --set NAME=VALUE, or --image FILE for the size of an input picture; "
        "-o request.yaml keeps the answer."
    ),
}
