"""Sentences of the room `measure`: runs, samplers, folders of weights, sweeps, choices, probes."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # what cannot be asked
    "run-bad-repeats": N_("--repeats {repeats}: give a whole number from 0 to 10000"),
    "run-bad-timeout": N_("--timeout {seconds}: give seconds above zero"),
    "run-bad-device": N_("--device {asked}: give auto, cpu, cuda, or cuda:N for card number N"),
    "run-no-gpu": N_(
        "--device {asked}: torch sees no NVIDIA card here. Check nvidia-smi and that torch is a CUDA build, "
        "or measure on the processor with --device cpu"
    ),
    "run-no-such-gpu": N_("--device {asked}: torch sees {found} cards here, numbered from 0"),
    "run-no-pipeline": N_("{model}: its pipeline is not in the installed diffusers {version}"),
    "run-needs-torch": N_(
        "Measuring needs {package}, which is not installed. Install it: pip install 'cardfit[run]'"
    ),
    "run-offload-needs-card": N_(
        "offload {offload} moves weights between a card and the host, and this run is on the processor. "
        "Leave --offload out, or run where there is a card"
    ),
    "run-not-settable": N_(
        "{what} {asked}: cardfit cannot set this on a real pipeline yet. Plan with it, and measure without"
    ),
    "run-video-not-taken": N_(
        "--video: {model} was asked for {task}, which takes no footage. Models that do: cardfit models --task "
        "video-to-video"
    ),
    "run-ingested": N_("{frames} frames of footage read by {engine} in {seconds:g} s"),
    "run-too-many-images": N_("{found} pictures: a run takes up to {allowed}"),
    "run-long-prompt": N_("a prompt of {found} characters: up to {allowed} are taken"),
    "run-image-too-large": N_("{path} is larger than {limit}"),
    "run-image-not-read": N_("{path} cannot be read as a picture: {why}"),
    # folders
    "folder-not-read": N_("{folder} cannot be read: {why}"),
    "folder-other-pipeline": N_(
        "{folder} holds a {found}, and {model} is a {expected}. Name the model that the folder is of"
    ),
    "folder-other-class": N_("{folder}: {component} is a {found}; expected {expected}"),
    "folder-lacks": N_("{folder} has no {component}, which {model} needs"),
    "folder-pickle": N_(
        "{folder} holds {found}, a pickle, and no safetensors. Pickles can run code and are never loaded. "
        "Convert it: load it once in an environment you trust and call save_pretrained"
    ),
    "folder-no-weights": N_(
        "{folder} holds no safetensors. Download the weights, or measure with --weights random"
    ),
    "folder-differs": N_("the folder's config is not that of {model} in the library: {components}"),
    # notes of a record
    "run-not-predicted": N_("no prediction stands beside this run: {why}"),
    "run-store-left": N_("the record is kept as a file only: {why}"),
    "run-latents-not-kept": N_(
        "the latents could not be kept: {why}. A decode that fails means sampling again"
    ),
    "run-outputs-not-kept": N_("the output could not be kept: {why}. It cannot be compared later"),
    # what an output may lose
    "choose-bad-ssim": N_("--min-ssim {asked}: SSIM is from -1 to 1, as in --min-ssim 0.97"),
    "choose-bad-seam": N_("--max-seam {asked}: give a score from 0 up; 6 is called a seam"),
    "choose-not-compared": N_(
        "its output was never compared: sweep with --reference, or cardfit compare REFERENCE RECORD"
    ),
    "choose-low-ssim": N_("SSIM {ssim:.4f}, asked for {asked:g}"),
    "choose-diverged": N_(
        "SSIM {ssim:.4f}, asked for {asked:g}: another picture than the reference, which SSIM cannot judge"
    ),
    "choose-seam": N_("a seam of score {seam:.1f}, asked for at most {asked:g}"),
    "sweep-limits-need-reference": N_(
        "--min-ssim and --max-seam need --reference: the cell or record that outputs are held against"
    ),
    "sweep-bad-reference": N_(
        "--reference {asked}: {found} cells have these values. Name enough of the axes to mean one"
    ),
    # decodes of the same latents
    "decode-bad-words": N_("--vae {asked}: {word} is not known. Join with commas: {allowed}"),
    "decode-bad-number": N_("--vae {asked}: {field}: {why}"),
    "decode-bad-overlap": N_("--vae {asked}: an overlap is smaller than its tile"),
    "decode-too-many": N_("{found} settings: one call takes up to {allowed}"),
    "decode-model-alone": N_("--model is for a latents file; a record names its model itself"),
    "decode-needs-model": N_("{path} does not say which model it is of: name it with --model"),
    "decode-other-latents": N_(
        "{path} holds latents of {shape}; {model} has {channels} channels. Name the model that made them"
    ),
    "decode-reference-tiled": N_(
        "the VAE of {model} was trained in tiles: its own tiles are the reference, one piece is not"
    ),
    "decode-no-reference": N_(
        "the reference could not be decoded here, so nothing was compared. Decode it where there is room, for example "
        "with --reference-device cpu"
    ),
    "decode-refused": N_("not decoded: {why}"),
    "decode-not-compared": N_("not compared: {why}"),
    "decode-progress": N_("decode {at} of {count}: {words}"),
    "run-label-quality": N_("picture"),
    "run-quality": N_("SSIM {ssim:.4f} against {reference}"),
    "run-quality-seam": N_("strongest seam {score:.1f}"),
    "run-quality-diverged": N_("another picture"),
    "decode-head": N_("{model}: latents of {latents}, {count} decodes"),
    "decode-col-words": N_("decode"),
    "decode-col-psnr": N_("PSNR"),
    "decode-col-ssim": N_("SSIM"),
    "decode-col-flip": N_("FLIP"),
    "decode-col-seam": N_("seams"),
    "decode-col-edge": N_("edges"),
    "decode-is-reference": N_("reference"),
    "decode-identical": N_("identical"),
    "decode-worst-seam": N_("{words}: the strongest seam, against the reference"),
    "decode-title": N_("Decodes of the same latents"),
    # outcomes
    "run-fake": N_("nothing ran: the device is a fake one, and every figure is made up"),
    "run-cut-off": N_("whoever recorded it was stopped before the run had ended"),
    "run-interrupted": N_("interrupted from the keyboard"),
    "run-timed-out": N_("not done after {seconds:g} s, which was its limit"),
    "run-killed-for-memory": N_(
        "the kernel killed it for want of host memory. Give the machine or the container more, or keep less on the host"
    ),
    "run-killed": N_(
        "killed from outside; neither the container nor the kernel counted a kill for want of memory"
    ),
    "run-died": N_("the process ended by itself with code {code}"),
    "run-raised": N_("{kind}: {text}"),
    # latents
    "latents-not-ours": N_("{path} was not written by cardfit run"),
    "latents-not-read": N_("{path} cannot be read as latents: {why}"),
    "resume-no-latents": N_(
        "record {record} kept no latents: it ended before its decode, or is an export. Run it again"
    ),
    "resume-latents-gone": N_(
        "{path} is no longer there. Latents lie beside their record, on the machine that made them"
    ),
    "resume-other-settings": N_(
        "{names} cannot change when latents are decoded again; these can: {allowed}. Run it anew for the others"
    ),
    "resume-needs-weights": N_(
        "record {record} ran with weights from a folder ({name}): name it with --weights"
    ),
    # why a sampler was silent
    "sampler-no-card": N_("the run was on the processor"),
    "sampler-no-pynvml": N_("pynvml is not installed: pip install 'cardfit[run]'"),
    "sampler-no-driver": N_("the driver did not answer: {why}"),
    "sampler-not-answered": N_("the driver does not say {what} of this card: {why}"),
    "sampler-no-proc": N_("/proc does not show the process"),
    "sampler-no-pss": N_("/proc does not show smaps_rollup of the process"),
    "sampler-no-io": N_("/proc does not show io of the process"),
    "sampler-no-cgroup": N_("no memory control group of the process can be read"),
    "sampler-no-limit": N_("the control group has no limit"),
    "sampler-no-oom-events": N_("the control group does not count kills"),
    "sampler-no-psi": N_("the kernel keeps no pressure stall information"),
    "sampler-torch-cpu": N_(
        "torch keeps no counters of a processor's memory; the phase memory profiles it"
    ),
    "sampler-too-short": N_("over before it could be read"),
    "run-model-or-resume": N_(
        "name a model or a plan file, or an earlier record with --resume; not both"
    ),
    # the page of a record
    "run-own-code": N_("own code"),
    "run-calls": N_("calls"),
    "run-calls-differ": N_("{calls} of {predicted}"),
    "run-predicted": N_("predicted"),
    "run-measured": N_("measured"),
    "run-off": N_("off by"),
    "run-reserved-predicted": N_("reserved pred."),
    "run-reserved": N_("reserved"),
    "run-time-predicted": N_("time pred."),
    "run-first": N_("first"),
    "run-steady": N_("steady"),
    "run-label-time": N_("Time"),
    "run-label-seen": N_("Seen"),
    "run-label-outcome": N_("Outcome"),
    "run-label-why": N_("Why"),
    "run-label-next": N_("Next"),
    "run-label-record": N_("Record"),
    "run-kept": N_("{id}: cardfit records show {id}"),
    "run-phase-mean": N_("{phase} {seconds} in the mean of {count}"),
    "run-phase-once": N_("{phase} {seconds}"),
    "run-step": N_("{seconds} a step"),
    "run-in-stage": N_("in {stage} ({component})"),
    "run-in-phase": N_("while: {phase}"),
    "run-tried": N_("tried to allocate {size}"),
    "run-held": N_("{size} allocated"),
    "run-next-resume": N_(
        "the latents are kept: cardfit run --resume {id} --vae-tiling decodes them again without sampling"
    ),
    "run-next-autopsy": N_("what cures it: cardfit autopsy {path}"),
    "figure-rss": N_("host {size} resident"),
    "figure-cgroup": N_("container {size}"),
    "figure-device": N_("card {size} in all"),
    "figure-received": N_("{size} over the link"),
    "figure-disk-read": N_("{size} read from disk"),
    "phase-load": N_("load"),
    "phase-first": N_("first"),
    "phase-steady": N_("steady"),
    "phase-memory": N_("memory"),
    "phase-resume": N_("decode again"),
    "phase-own": N_("own code"),
    "outcome-ok": N_("ok"),
    "outcome-oom": N_("out of memory on the card"),
    "outcome-host-oom": N_("out of host memory"),
    "outcome-error": N_("ended with an error"),
    "outcome-timeout": N_("timeout"),
    "outcome-interrupted": N_("interrupted"),
    # while it runs
    "run-ends": N_("ends {at}"),
    "run-denoise-ends": N_("denoise ends {at}"),
    "run-decode-needs": N_("decode needs {size} of {room}"),
    "run-latents-first": N_("latents saved first"),
    "run-cost-most": N_("{money} at most"),
    "run-cost-about": N_("about {money}"),
    # the list of records
    "records-id": N_("id"),
    "records-model": N_("model"),
    "records-size": N_("size"),
    "records-settings": N_("settings"),
    "records-card": N_("card"),
    "records-outcome": N_("outcome"),
    "records-peak": N_("peak"),
    "records-seconds": N_("a run"),
    "records-none": N_("no records. Make one: cardfit run MODEL --weights random"),
    "records-exported": N_("{count} records written to {file}"),
    "records-pruned": N_("{count} records removed"),
    "records-would-prune": N_("{count} records would be removed; say --yes to remove them"),
    # choosing
    "choose-what": N_("name a model, or a sweep with --sweep; not both"),
    "choose-bad-headroom": N_("--headroom {asked}: give a share from 0 up to 100 percent"),
    "choose-bad-demand": N_("--demand {asked}: give outputs an hour above zero"),
    "choose-no-records": N_(
        "nothing was measured that matches. Measure it: cardfit run MODEL, or cardfit sweep FILE"
    ),
    "choose-only-fake": N_(
        "all {count} records are of the fake device, on which nothing ran. Measure on a real one: cardfit sweep FILE "
        "--device cuda"
    ),
    "choose-own-code": N_("records of own code carry no settings to choose among"),
    "choose-several": N_(
        "the records are of {count} different requests. Name size, frames and steps, or one sweep with --sweep"
    ),
    "choose-nothing": N_("none of {count} configurations passed"),
    "choose-least-memory": N_("the least memory of the {count} that passed, of {of} measured"),
    "choose-least-price": N_(
        "the least cost of an output of the {count} that passed, of {of} measured"
    ),
    "choose-least-seconds": N_("the least time of the {count} that passed, of {of} measured"),
    "choose-failed": N_("{count} of {of} runs ended in: {kind}"),
    "choose-not-finished": N_("no run of it ended"),
    "choose-too-near": N_("{free:.1f} % free, {asked:.1f} % asked"),
    "choose-ran": N_("ran; how much its place holds is not known"),
    "choose-fits": N_("{free:.1f} % free"),
    "choose-one-is-enough": N_(
        "one card is enough: {demand:g} an hour asked, {low:.1f} at the least measured"
    ),
    "choose-cards": N_(
        "{cards} cards for {demand:g} an hour: one makes {low:.1f} at the least measured"
    ),
    "choose-more-repeats": N_(
        "cannot tell how many cards {demand:g} an hour take: {missing} more repeats are needed (--repeats)"
    ),
    "choose-on-the-edge": N_(
        "{demand:g} an hour is just what a whole number of cards makes: take one more"
    ),
    "choose-label": N_("Chosen"),
    "choose-label-demand": N_("Demand"),
    "choose-none": N_("nothing"),
    "choose-this": N_("{settings} on {on}"),
    "choose-col-free": N_("to spare"),
    "choose-col-interval": N_("an hour"),
    "choose-col-cost": N_("an output"),
    "choose-rate": N_("{rate:.4g}"),
    "choose-rate-from": N_("{low:.4g} and up"),
    "choose-rate-range": N_("{low:.4g} to {high:.4g}"),
    "help-choose-by": N_("what decides among those that passed: memory, price or seconds"),
    "help-choose-headroom": N_("percent of the card's usable memory that is to stay free"),
    "help-choose-demand": N_("outputs an hour that are wanted"),
    "help-choose-price": N_("USD an hour of the machine, instead of the offers' cheapest"),
    # learning
    "calibrate-nothing": N_(
        "none of {count} records can be learnt from ({why}). Measure on a card: cardfit run MODEL --device cuda"
    ),
    "calibrate-col-card": N_("card"),
    "calibrate-col-what": N_("what"),
    "calibrate-col-factor": N_("measured"),
    "calibrate-col-left": N_("left after it"),
    "calibrate-col-runs": N_("runs"),
    "calibrate-time": N_("time of a run"),
    "calibrate-stage": N_("time of {stage}"),
    "calibrate-kind": N_("time of {kind} kernels"),
    "calibrate-allocated": N_("allocated peak"),
    "calibrate-reserved": N_("reserved peak"),
    "calibrate-context": N_("beside the allocator"),
    "calibrate-used": N_(
        "cardfit plan uses times of runs and kernels, and contexts, from now on. Remove them: delete calibration.json"
    ),
    "calibrate-left-not-ok": N_("{count} records left out: they did not end well"),
    "calibrate-left-fake": N_("{count} records left out: of the fake device, on which nothing ran"),
    "calibrate-left-no-card": N_(
        "{count} records left out: on a processor, or on a card nobody knows"
    ),
    "calibrate-left-not-predicted": N_(
        "{count} records left out: no prediction stands beside them"
    ),
    "help-calibrate-dry": N_("say what would be learnt, and keep nothing"),
    # probing
    "probe-no-card": N_("no NVIDIA card and driver were found on this machine"),
    "probe-link-not-measured": N_("the rate of the link was not measured: {why}"),
    "probe-disk-full": N_("the disk was not measured: {free} free"),
    "probe-disk-cached": N_(
        "the disk's reading was not measured: this system cannot leave its cache out"
    ),
    "probe-disk": N_(
        "{folder} cannot be written: {why}. Name a folder on the disk that counts with --folder"
    ),
    "probe-no-offer": N_("{provider} offers no {card}. These do: {names}"),
    "probe-less-card": N_("the card is {found}, listed was {listed}"),
    "probe-less-memory": N_("the card has {found}, listed were {listed}"),
    "probe-less-link-lanes": N_("link x{found}, not x{listed}"),
    "probe-less-link-gen": N_("link of PCIe generation {found} under load, not {listed}"),
    "probe-less-link-rate": N_(
        "{found} a second over the link, where {listed} a second are listed"
    ),
    "probe-less-ram": N_("RAM {found}, not {listed} (the container's limit counts)"),
    "probe-less-cores": N_("{found} processor cores, not {listed}"),
    "probe-less-disk": N_("{found} free on the disk, listed were {listed}"),
    "probe-as-card": N_("the card is {found}, as listed"),
    "probe-as-memory": N_("the card has {found}, listed were {listed}"),
    "probe-as-link-lanes": N_("link x{found}, listed x{listed}"),
    "probe-as-link-gen": N_("link of PCIe generation {found}, listed {listed}"),
    "probe-as-link-rate": N_("{found} a second over the link, of {listed} a second"),
    "probe-as-ram": N_("RAM {found}, listed {listed}"),
    "probe-as-cores": N_("{found} processor cores, listed {listed}"),
    "probe-as-disk": N_("{found} free on the disk, listed {listed}"),
    "probe-as-listed": N_("nothing is less than listed, in {count} things looked at"),
    "probe-send-back": N_("Less than listed in {count} things: send it back"),
    "probe-label-listed": N_("Listed"),
    "probe-label-card": N_("Card"),
    "probe-label-host": N_("Host"),
    "probe-label-disk": N_("Disk"),
    "probe-label-container": N_("Container"),
    "probe-used": N_("{size} taken"),
    "probe-tenants": N_("{count} processes on it"),
    "probe-link": N_("PCIe {gen} x{lanes}"),
    "probe-link-rate": N_("{size} a second to the card"),
    "probe-cores": N_("{count} cores"),
    "probe-ram": N_("{size} RAM"),
    "probe-limit": N_("{size} allowed by the container"),
    "probe-disk-free": N_("{size} free"),
    "probe-disk-write": N_("writes {size} a second"),
    "probe-disk-read": N_("reads {size} a second"),
    "probe-shared": N_("{size} shared memory"),
    "probe-locked": N_("{size} may be locked"),
    "probe-capabilities": N_("driver capabilities: {names}"),
    "probe-no-video": N_(
        "no video: NVENC and NVDEC are not there (start it with NVIDIA_DRIVER_CAPABILITIES=all)"
    ),
    "probe-nothing-said": N_("nothing said"),
    "help-probe-against": N_("a card, or provider/card for an offer: say what is less than listed"),
    "help-probe-folder": N_("a folder on the disk that counts"),
    "help-probe-lanes": N_("PCIe lanes that were listed"),
    "help-probe-ram": N_("RAM that was listed, as in 64GB"),
    "help-probe-disk": N_("disk that was listed, as in 200GB"),
    # sweeps
    "sweep-unknown-field": N_(
        "{field} is no field of the request or the settings. Fields: {allowed}"
    ),
    "sweep-no-values": N_(
        "{field}: give a list of values to go through; the model itself cannot be varied"
    ),
    "sweep-too-many": N_("{found} combinations: a sweep takes up to {allowed}. Leave an axis out"),
    "sweep-bad-axis": N_(
        "--over {asked}: give FIELD=VALUE,VALUE as in --over vae_tiling=false,true"
    ),
    "sweep-nothing": N_(
        "nothing is varied. Name axes in the file under sweep:, with --over, or use --auto"
    ),
    "sweep-auto-needs-card": N_(
        "--auto looks for settings near what the card has, and no card with known memory was found here"
    ),
    "sweep-auto-or-axes": N_("--auto chooses the settings itself; leave out the axes {axes}"),
    "sweep-runs-already": N_(
        "{name} is being run by another process. Wait for it, or give this one --name"
    ),
    "sweep-refused": N_("not run: {why}"),
    "sweep-hopeless-reserved": N_(
        "left out: predicted to need as much of the card as one that ran out of it"
    ),
    "sweep-hopeless-host": N_(
        "left out: predicted to need as much host memory as one that ran out of it"
    ),
    "sweep-hopeless-seconds": N_(
        "left out: predicted to take as long as one that was not done in time"
    ),
    "sweep-head": N_("{id}: {model}, {ran} run now, {kept} from before"),
    "sweep-col-values": N_("settings"),
    "sweep-col-predicted": N_("predicted"),
    "sweep-col-peak": N_("peak"),
    "sweep-col-host": N_("host"),
    "sweep-col-seconds": N_("a run"),
    "sweep-col-outcome": N_("outcome"),
    "sweep-skipped": N_("left out"),
    "sweep-next": N_("choose among them: cardfit choose --sweep {id}"),
    "sweep-again": N_(
        "go on after any end by asking the same again: what has a finished record does not run twice"
    ),
    "sweep-axis-peak": N_("peak memory, {unit}"),
    "sweep-axis-seconds": N_("seconds a run"),
    "sweep-chart-extra": N_(
        "Charts need {package}, which is not installed. Install it: pip install 'cardfit[web]'"
    ),
    # help
    "help-decode-source": N_(
        "id or path of a record that kept its latents, or one of its latents files"
    ),
    "help-decode-vae": N_(
        "a decode in words: full, tiled, sliced, tile=256,overlap=64, chunk=8, float32, joined with commas; can be "
        "repeated; left out, the usual ones of the model"
    ),
    "help-decode-model": N_("the model of a latents file"),
    "help-decode-reference-device": N_("where the reference is decoded, if not on --device"),
    "help-probe-codecs": N_("try every video encoder and decoder too, as cardfit codecs does"),
    "help-run-video": N_("footage of a video-to-video run: a video or a folder of frames"),
    "help-run-keep-outputs": N_(
        "keep the output as a lossless file beside the record, to be compared"
    ),
    "help-sweep-reference": N_(
        "one cell by its values, as in vae_tiling=false, or a record's id: keep outputs and compare each with it"
    ),
    "help-choose-min-ssim": N_("least SSIM of the output against its reference, 0 to 1"),
    "help-choose-max-seam": N_(
        "highest seam score against the reference; from 6 on it is called a seam"
    ),
    "help-sweep-over": N_("FIELD=VALUE,VALUE: go through these values; can be repeated"),
    "help-sweep-auto": N_("go through the settings whose predicted need is near what the card has"),
    "help-sweep-name": N_("name of the sweep, under which it goes on"),
    "help-sweep-chart": N_("draw peak against seconds into this file: .html, .svg or .png"),
    "help-sweep-file": N_("YAML file with request, settings and sweep; or a model"),
    "help-run-weights": N_(
        "random, a local diffusers folder of safetensors, or the id of a repo on the hub"
    ),
    "help-run-configs": N_(
        "with random weights: a diffusers folder whose configs replace the library's"
    ),
    "help-run-device": N_("auto, cpu, cuda, or cuda:N"),
    "help-run-repeats": N_("steady repetitions after the first call"),
    "help-run-memory": N_(
        "one more repetition under torch's memory profiler [default: on a processor only]"
    ),
    "help-run-timeout": N_("seconds after which the run is ended, with all that was recorded kept"),
    "help-run-prompt": N_("the prompt; kept as a hash"),
    "help-run-negative": N_("the negative prompt; kept as a hash"),
    "help-run-image": N_("an input picture; can be repeated; kept as a hash"),
    "help-run-keep-inputs": N_("keep the prompts in the record, not only their hashes"),
    "help-run-resume": N_(
        "id or path of a record: decode its latents again, with other VAE settings"
    ),
    "help-run-price": N_(
        "what the machine costs an hour in USD, for the line before you walk away"
    ),
    "help-store": N_(
        "the store: a database URL or a folder; CARDFIT_STORE, else SQLite in the user's data folder, when left out"
    ),
    "help-records-action": N_(
        "list, show, export, import, prune; push, pull, merge: share with another store; grant-read: a role for serve"
    ),
    "help-records-what": N_(
        "show: id or path; export: file to write; import: file or folder to read; push, pull, merge: the other store; "
        "grant-read: the role"
    ),
    "help-records-model": N_("only records of this model"),
    "help-records-card": N_("only records of this card"),
    "help-records-outcome": N_("only records that ended so"),
    "help-records-sweep": N_("only records of this sweep"),
    "help-records-last": N_("only the latest so many; the page of list shows 200 when left out"),
    "help-records-older": N_("prune: only records older than this, as in 30d"),
    "help-records-yes": N_("prune: remove, instead of saying what would be removed"),
}
