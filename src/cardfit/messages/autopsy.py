"""Sentences of the room `autopsy`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # input
    "autopsy-empty": N_(
        "The text is empty. Give the error message or the whole log: cardfit autopsy FILE, or pipe it in."
    ),
    "autopsy-binary": N_(
        "{name} is not text: it holds zero bytes. Give the log or the error message as text."
    ),
    "autopsy-not-read": N_("{name} cannot be read: {why}. Give the path of a log, or - for stdin."),
    "autopsy-no-option": N_("Unknown option: {asked}. See: cardfit autopsy --help"),
    "autopsy-terminal": N_(
        "Nothing was given. Name a file, as in cardfit autopsy error.txt, or pipe the text in."
    ),
    "autopsy-flags-without-model": N_(
        "Flags of the request were given ({flags}), but no model: none stands in the text. Add --model."
    ),
    "autopsy-tail": N_("{name} has {size}: only its last {kept} were read."),
    "help-autopsy-file": N_("error message, log or traceback; - reads stdin"),
    "help-autopsy-model": N_("the model that ran; with it the cures carry their new peak"),
    "help-autopsy-card": N_("the card it ran on; found by its capacity when left out"),
    "help-ram-had": N_("host RAM of the machine it ran on, as in 64GB"),
    # what lines tell
    "autopsy-tells-device": N_("the card had no room for a request"),
    "autopsy-tells-driver": N_("the driver had no memory left to give"),
    "autopsy-tells-pinned": N_(
        "page-locked host memory was refused; the text only reads like the card's"
    ),
    "autopsy-tells-host": N_("host RAM ran out, not the card's memory"),
    "autopsy-tells-dtype": N_("two number types met"),
    "autopsy-tells-kernel": N_("the build has no kernel for this card"),
    "autopsy-tells-build": N_("PyTorch does not reach a card"),
    "autopsy-tells-other": N_("an error that is not about memory"),
    "autopsy-tells-fallback": N_("the whole decode did not fit, so it was done again in tiles"),
    "autopsy-tells-others": N_(
        "other processes hold {other} of {capacity}; {tried} were asked for"
    ),
    "autopsy-tells-one-request": N_("one request of {tried} on a card of {capacity}"),
    "autopsy-tells-attention-frame": N_("it was made inside attention"),
    "autopsy-tells-fragmented": N_(
        "{apart} lie reserved in pieces that are free, and {tried} in one piece were asked for"
    ),
    "autopsy-tells-full": N_("{used} of {capacity} were taken when {tried} were asked for"),
    "autopsy-tells-tiled": N_("tiles were in use"),
    "autopsy-tells-moving": N_("weights were on their way to the card"),
    "autopsy-tells-spill": N_("host memory stands in for the card's"),
    "autopsy-tells-slowed": N_("steps went from {fast} s to {slow} s"),
    "autopsy-tells-match": N_(
        "{size} is what {op} of {component} asks for in {stage}, by the dry run"
    ),
    "autopsy-tells-denoiser": N_("the denoiser alone has {size} of weights, the card {room}"),
    "autopsy-tells-encoder": N_("text encoders of {size} stay on the card and {over} are missing"),
    "autopsy-tells-stage-load": N_("it was loading"),
    "autopsy-tells-stage-ingest": N_("it was reading pictures or footage"),
    "autopsy-tells-stage-encode_prompt": N_("it was encoding the prompt"),
    "autopsy-tells-stage-encode_condition": N_("it was encoding an input picture"),
    "autopsy-tells-stage-denoise": N_("it was denoising"),
    "autopsy-tells-stage-decode": N_("it was decoding"),
    "autopsy-tells-stage-post": N_("it was post-processing"),
    "autopsy-tells-stage-export": N_("it was writing the file"),
    # causes
    "autopsy-cause-decode_untiled": N_(
        "The VAE decoded everything in one piece. Denoising was done: save the latents next time."
    ),
    "autopsy-cause-decode": N_("The decode was tiled, and its tiles are still too large."),
    "autopsy-cause-attention": N_(
        "One request this large is attention without a fused kernel: it builds every query against "
        "every key. Older cards (before Ampere), an old PyTorch or a mask lead to it."
    ),
    "autopsy-cause-fragmentation": N_(
        "There was room, but not in one piece: what PyTorch held back unused was larger than the request."
    ),
    "autopsy-cause-text_encoder_resident": N_(
        "The text encoder is on the card together with the rest. It is needed once, before the first step."
    ),
    "autopsy-cause-weights_do_not_fit": N_(
        "Weights fill the card before any work begins. A smaller picture will not help."
    ),
    "autopsy-cause-activations": N_(
        "The work itself, on top of the weights, is too large: it grows with size, frames and batch."
    ),
    "autopsy-cause-load_on_card": N_("Everything was being moved to the card at once."),
    "autopsy-cause-host_ram": N_(
        "Host RAM ran out and the process was ended; the card is not to blame. Weights lie in RAM "
        "while loading and while offloaded."
    ),
    "autopsy-cause-pinned_memory": N_(
        "Page-locked (pinned) host memory could not be had. The message names CUDA, but RAM is short, "
        "not the card's memory."
    ),
    "autopsy-cause-driver": N_(
        "The driver refused memory and counts nothing: pinned host memory or another process are "
        "likelier than the pipeline itself."
    ),
    "autopsy-cause-spill": N_(
        "Windows backs the card with host memory, so the run goes on, many times slower."
    ),
    "autopsy-cause-dtype": N_(
        "Two parts compute in different number types. Memory has nothing to do with it."
    ),
    "autopsy-cause-other_process": N_("Other programs held the memory that was missing."),
    "autopsy-cause-unknown": N_("The card was full; the text does not tell at which stage."),
    "autopsy-cause-nothing": N_("There is no error in this text."),
    "autopsy-no-memory-kernel": N_(
        "Not memory: this build of PyTorch or of an attention package has no code for this card's generation."
    ),
    "autopsy-no-memory-build": N_(
        "Not memory: PyTorch has no CUDA, or finds no driver or no card."
    ),
    "autopsy-no-memory-other": N_("Not memory: the program ended with an error of another kind."),
    # cures
    "autopsy-cure-segments": N_("let PyTorch grow its segments, so that pieces join"),
    "autopsy-cure-close_others": N_(
        "close the other programs on this card (nvidia-smi lists them)"
    ),
    "autopsy-cure-fused_attention": N_(
        "use a fused attention kernel; before Ampere the memory-efficient one, with a current PyTorch"
    ),
    "autopsy-cure-latents_first": N_(
        "save the latents and decode them alone, in a process without the denoiser"
    ),
    "autopsy-cure-slicing": N_("decode one output of the batch at a time"),
    "autopsy-cure-encode_apart": N_("encode the prompt first, then let the text encoder go"),
    "autopsy-cure-one_dtype": N_("give every part that meets the same number type"),
    "autopsy-cure-cuda_build": N_(
        "install a PyTorch build with CUDA and a driver that is new enough"
    ),
    "autopsy-cure-kernel_build": N_(
        "install builds that know this card, or choose PyTorch's own attention"
    ),
    "autopsy-cure-quiet_card": N_("run on a card without a display"),
    "autopsy-cure-model_offload": N_("keep one component at a time on the card"),
    "autopsy-cure-group_offload": N_("stream the weights layer by layer"),
    "autopsy-cure-sequential_offload": N_("move every layer as it is needed; the slowest"),
    "autopsy-cure-unpinned": N_("pin memory only while copying, or not at all"),
    "autopsy-cure-page_file": N_("give the system a larger swap or page file"),
    "autopsy-cure-weights_on_disk": N_("let the weights wait on disk instead of in RAM"),
    "autopsy-cure-no_fallback": N_(
        "forbid the driver's system memory fallback, so that it fails instead of crawling"
    ),
    "autopsy-cure-more_ram": N_("take a machine, or a container limit, with more RAM"),
    "autopsy-cure-tiling": N_("decode in overlapping tiles"),
    "autopsy-cure-smaller_tile": N_("take smaller tiles; seams become likelier"),
    "autopsy-cure-fp8": N_("keep the denoiser's weights in 8 bits"),
    "autopsy-cure-nf4": N_("keep weights in 4 bits"),
    "autopsy-cure-half_precision": N_("load in bfloat16 instead of float32"),
    "autopsy-cure-smaller_job": N_("ask for fewer frames, a smaller size or a smaller batch"),
    "autopsy-cure-larger_card": N_("take a card with more memory or of a later generation"),
    # next
    "autopsy-next-fix": N_("Fix that, run again, and hand the next error to cardfit autopsy."),
    "autopsy-next-paste": N_("Paste the whole log, with the traceback and the lines above it."),
    "autopsy-next-flags": N_(
        "Add what ran, as in: cardfit autopsy FILE --model wan2.1-t2v-14b --width 1280 --height 720 "
        "--num-frames 81. Then every cure shows its new peak."
    ),
    "autopsy-next-card": N_("Name the card: cardfit autopsy FILE --model {asked} --card CARD"),
    "autopsy-next-other-card": N_("No settings hold it on this card. See: cardfit plan {asked}"),
    "autopsy-next-plan": N_("cardfit plan {asked} --card {card} --as code"),
    # notes
    "autopsy-not-in-plan": N_(
        "No new peak is predicted: the request is not known. Give --model, --width, --height and, for "
        "video, --num-frames."
    ),
    "autopsy-card-assumed": N_(
        "The card was taken for a {card}, by its capacity; --card names another."
    ),
    "autopsy-model-unknown": N_("{name} stands in the text, and the library has no such model."),
    "autopsy-request-read": N_("Read from the text: {fields}."),
    "autopsy-plan-disagrees": N_(
        "By the dry run this request takes {peak} and fits. Something else was on the card, or other "
        "settings or versions ran."
    ),
    "autopsy-other-stage": N_("By the dry run {stage} needs most, and it ended in {here}."),
    "autopsy-spilled-before": N_(
        "{allocated} were allocated, more than the card has: Windows was lending host memory already."
    ),
    "autopsy-other-program": N_(
        "The predicted figures are those of diffusers; {program} keeps memory in its own way."
    ),
    "autopsy-planner-failed": N_("The planner has no figures for this: {reason}"),
    # the page
    "autopsy-do-first": N_("Do first"),
    "autopsy-then": N_("Or"),
    "autopsy-why": N_("Why"),
    "autopsy-where": N_("Where"),
    "autopsy-seen": N_("Seen"),
    "autopsy-numbers": N_("Memory"),
    "autopsy-next": N_("Next"),
    "autopsy-as-run": N_("As it ran"),
    "autopsy-planned": N_("{settings}, the planner's cheapest for this card: {after}"),
    "autopsy-headline": N_("{cause} ({confidence})"),
    "autopsy-line": N_("line {line}: {text}"),
    "autopsy-stage-unknown": N_("the text does not tell the stage"),
    "autopsy-after": N_("then {peak} in {stage}, {verdict}"),
    "autopsy-after-host": N_("then {host} of host RAM, {peak} on the card"),
    "autopsy-peak": N_("{peak} in {stage}, {verdict}"),
    "autopsy-tried": N_("{size} asked for"),
    "autopsy-of": N_("card {size}"),
    "autopsy-free": N_("{size} free"),
    "autopsy-allocated": N_("{size} allocated"),
    "autopsy-apart": N_("{size} reserved and unused"),
    "autopsy-others": N_("{size} held by others"),
    "autopsy-in-use": N_("{size} in use by the process"),
    "autopsy-confidence-sure": N_("sure"),
    "autopsy-confidence-likely": N_("likely"),
    "autopsy-confidence-guess": N_("a guess"),
    "autopsy-price-free": N_("free"),
    "autopsy-price-slower": N_("slower"),
    "autopsy-price-more_ram": N_("more RAM"),
    "autopsy-price-lossy": N_("lossy"),
    "autopsy-price-other_job": N_("another job"),
    "autopsy-name-decode_untiled": N_("decode in one piece"),
    "autopsy-name-decode": N_("decode, tiles too large"),
    "autopsy-name-attention": N_("attention without a fused kernel"),
    "autopsy-name-fragmentation": N_("fragmented memory"),
    "autopsy-name-text_encoder_resident": N_("text encoder on the card"),
    "autopsy-name-weights_do_not_fit": N_("weights do not fit"),
    "autopsy-name-activations": N_("the work is too large"),
    "autopsy-name-load_on_card": N_("everything loaded onto the card"),
    "autopsy-name-host_ram": N_("host RAM ran out"),
    "autopsy-name-pinned_memory": N_("pinned host memory"),
    "autopsy-name-spill": N_("spilled into host memory"),
    "autopsy-name-dtype": N_("number types do not match"),
    "autopsy-name-other_process": N_("another process on the card"),
    "autopsy-name-no_memory_error": N_("not a memory error"),
    "autopsy-name-unknown": N_("not clear"),
}
