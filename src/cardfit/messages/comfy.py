"""Sentences of the room `comfy`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # the file
    "comfy-not-read": N_("{path}: cannot be read ({why}). Check the path."),
    "comfy-too-large": N_(
        "{path}: larger than {limit} bytes, more than a workflow has. Check the path."
    ),
    "comfy-not-text": N_("{path}: not a text file in UTF-8 (byte {byte}). Check the path."),
    "comfy-not-json": N_("{path}, line {line}: not JSON ({why}). Save the workflow again."),
    "comfy-nested": N_("{path}: nested too deeply to be a workflow."),
    "comfy-no-metadata": N_(
        "{path}: holds no workflow. ComfyUI writes one into its PNG, WEBP and video files unless that is switched off; "
        "editors and chat programs remove it. Give the workflow's JSON."
    ),
    "comfy-video-needs-av": N_(
        "{path}: reading a video's metadata needs PyAV: pip install 'cardfit[quality]'."
    ),
    "comfy-not-a-picture": N_("{path}: not a PNG, JPEG, WEBP or GIF. Give the size with --set."),
    "comfy-not-a-workflow": N_(
        "{path}: JSON, but no ComfyUI workflow. It needs nodes (as the editor saves it), or class_type and inputs "
        "(Export, API)."
    ),
    "comfy-too-many-nodes": N_("{path}: more than {limit} nodes. Nothing was read."),
    "comfy-too-deep": N_(
        "{path}: subgraphs nested deeper than {limit} at node {node}. One may hold itself."
    ),
    "comfy-bad-node": N_("{path}: node {node} has no usable {part}. Save the workflow again."),
    "comfy-bad-link": N_("{path}: {link} is no link. Save the workflow again."),
    "comfy-cycle": N_("{path}: the links run in a circle at node {node}. ComfyUI cannot run it."),
    "comfy-chain-too-long": N_(
        "{path}: more than {limit} nodes in a row decide one value at node {node}."
    ),
    "comfy-link-to-nowhere": N_(
        "{path}: node {where} takes its input from node {node}, which is not there. Connect it again."
    ),
    "comfy-bad-number": N_("{path}: node {node} says {input} {found}, which no picture has."),
    "comfy-unsafe-path": N_(
        "{path}: node {node} names the file {found}. Only names below ComfyUI's models folder are taken."
    ),
    # the command
    "help-comfy": N_(
        "ComfyUI: plan a workflow; deploy a server that only you reach, check it, take stock, record."
    ),
    "help-comfy-workflow": N_(
        "workflow: JSON of either format, or a PNG, WEBP or video from ComfyUI"
    ),
    "help-comfy-set": N_("what the file does not say, as node.input=value; can be repeated"),
    "help-comfy-image-size": N_("a picture of the size that the workflow will load"),
    "help-comfy-models-at-hand": N_(
        "ComfyUI's models folder: headers of files there say more than names"
    ),
    "help-comfy-requests-only": N_("read the file and show its requests, without planning"),
    # the page
    "comfy-nothing": N_("The workflow makes nothing that could be planned."),
    "comfy-request": N_("Request {at} of {of}: {model}"),
    "comfy-batch": N_("batch {count}"),
    "comfy-fps": N_("{fps} fps"),
    "comfy-steps": N_("{count} steps"),
    "comfy-pass": N_("{node}: {size}, {steps} steps, cfg {cfg}, {file}"),
    "comfy-decode": N_("{node}: decoded whole, in tiles where that does not fit"),
    "comfy-decode-tiled": N_(
        "{node}: decoded in tiles of {tile}, overlap {overlap}, temporal {temporal}, "
        "temporal overlap {temporal_overlap}"
    ),
    "comfy-origin": N_("{name} {value}: from {origins}"),
    "comfy-files": N_("Files"),
    "comfy-unknown-nodes": N_(
        "Node types that are not known, so nothing was read from them: {names}."
    ),
    "comfy-questions": N_("The file does not say:"),
    "comfy-missing": N_("{node} (#{id}), {input}: {why}"),
    "comfy-how-to-answer": N_(
        'Answer with --set "NODE.INPUT=VALUE" (title or id), or --image FILE for the size of a picture.'
    ),
    "comfy-question": N_("{node}, {input} ({why})"),
    "comfy-answer-form": N_(
        '--set {answer}: give node.input=value, as in --set "Load Image.width=1024".'
    ),
    # answers
    "comfy-answer-no-node": N_(
        "--set {answer}: no node has that id or title. Some that the workflow has: {allowed}."
    ),
    "comfy-answer-several": N_(
        "--set {answer}: several nodes are called {node}. Name one by its id: {ids}."
    ),
    "comfy-answer-unused": N_(
        "--set {answer}: nothing asks for it. Name a node (node.input=value). Asked for: {asked}."
    ),
    "comfy-answer-bad": N_("--set {answer}: {found} is no number, truth value or text."),
    "comfy-answer-size": N_(
        "--set {answer}: found {found}, needs a whole number from 1 to {limit}."
    ),
    # questions
    "comfy-ask-picture": N_(
        "the file does not say how large the picture or video is that is loaded"
    ),
    "comfy-ask-type": N_("node type {type} is not known to say its {input}"),
    "comfy-ask-rule": N_("{type} works {input} out from what the file does not have"),
    "comfy-ask-formula": N_("the expression of {type} has no value here"),
    "comfy-ask-unlinked": N_("input {input} of {type} is not connected"),
    "comfy-ask-not-there": N_("the file has no value for {input} of {type}"),
    # the plan
    "comfy-incomplete": N_(
        "Not planned: size, frames or steps are open. Answer the questions above."
    ),
    "comfy-not-planned": N_("Not planned: {reason}"),
    "comfy-side": N_(
        "{side} {asked} becomes {made}, a multiple of {step}, as the latents are cut."
    ),
    "comfy-kin": N_("{files}: trained further from {model}, whose memory and time hold for it."),
    "comfy-loras": N_(
        "LoRAs: {files}. ComfyUI adds them into the weights as it loads them, so the card holds no more; {size} of "
        "factors stay in host RAM."
    ),
    "comfy-loras-unread": N_(
        "LoRAs: {files}. ComfyUI adds them into the weights as it loads them, so the card holds no more; what they "
        "take of host RAM is not counted, since the files are not at hand (--models)."
    ),
    "comfy-controlnets": N_(
        "ControlNets: {files}. They lie on the card beside the denoiser and are counted by the shape that their names "
        "say, else by the usual one."
    ),
    "comfy-not-counted": N_(
        "{files}: no network of this kind is known for {model}, so it is not counted. Leave room for it."
    ),
    "comfy-passes": N_(
        "Passes (how often, size, frames: steps): {passes}. Memory is that of the largest, seconds are of all."
    ),
    "comfy-save-latent": N_(
        "Decode comes last: add SaveLatent before node {node}, and a failed decode costs no steps."
    ),
    # the runtime
    "comfy-fits": N_(
        "all {weights} of the denoiser stay on the card beside {working} of working memory"
    ),
    "comfy-fits-tiles": N_(
        "the denoiser stays on the card; decoding it whole does not fit, so ComfyUI tries again in tiles"
    ),
    "comfy-pages": N_(
        "{paged} of the denoiser's {weights} come from host RAM at every step; the run ends, slower"
    ),
    "comfy-pages-disk": N_(
        "the weights take {host} of host RAM, more than there is: some are read from disk again and again"
    ),
    "comfy-over": N_(
        "one step needs {working} beside any weights: {over} more than the card has free"
    ),
    "comfy-over-decode": N_("decode needs {decode}, {over} more than the card has free"),
    "comfy-over-host": N_("host RAM is {over} short of the largest model and the frames"),
    "comfy-cure-tiles": N_(
        "exchange VAE Decode for VAE Decode (Tiled): tile {tile}, overlap {overlap}, temporal {temporal}, "
        "temporal overlap {temporal_overlap}"
    ),
    "comfy-cure-tiles-image": N_(
        "exchange VAE Decode for VAE Decode (Tiled): tile {tile}, overlap {overlap}"
    ),
    "comfy-cure-ram": N_("take a machine with {host} of RAM, or start ComfyUI with --cache-none"),
    "comfy-cure-shorter": N_("fewer frames or a smaller size: {over} too much for one step"),
    "comfy-cure-smaller": N_("a smaller size or batch: {over} too much for one step"),
    "comfy-cure-file": N_(
        "download the {variant} file of the denoiser ({size}): nothing is paged then"
    ),
    "comfy-cure-none": N_(
        "no usual file variant is small enough for the {room} that are free for weights"
    ),
    "comfy-rules": N_(
        "ComfyUI's own placement: one model on the card at a time, what does not fit is paged. Its versions differ; "
        "IP adapters and reference pictures beside the sampler are not counted."
    ),
    # remarks
    "comfy-no-picture": N_("The chain of {node} makes sound or a solid, no picture: left out."),
    "comfy-no-sampler": N_(
        "No sampler that runs: the workflow asks for no local picture or video."
    ),
    "comfy-model-unknown": N_("The library has no entry for {files}, so it is not planned."),
}
