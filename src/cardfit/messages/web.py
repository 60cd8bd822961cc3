"""Sentences of the room `web`: the pages of the configurator, its terms, and what a server turns away."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # what a server turns away
    "web-busy": N_(
        "{most} answers are being made already, which is as many as this server makes. Ask again in {again} seconds."
    ),
    "web-takes-longer": N_(
        "This answer takes longer than {seconds} seconds. It is still being made: ask again in {again} seconds."
    ),
    "web-too-often": N_(
        "More than {most} requests a second from one client. Ask again in {again} seconds."
    ),
    "web-too-large": N_("The body is larger than the {most} bytes that this server takes."),
    "web-too-slow": N_("The body did not come within {seconds} seconds."),
    "web-long-query": N_("The address is longer than the {most} bytes that this server takes."),
    "web-not-read": N_("The body could not be read as JSON."),
    "web-given-twice": N_("{field} is given twice. Give it once."),
    "web-other-host": N_(
        "This server does not answer as {name}. Start it with --allow-host {name} if it should."
    ),
    "web-token": N_(
        "This server asks for its token: open its address with ?token=TOKEN once, or send Authorization: Bearer TOKEN."
    ),
    "web-no-page": N_("There is nothing at {path}."),
    "web-no-method": N_("{method} is not something to do with {path}."),
    "web-broken": N_(
        "Something in cardfit itself went wrong. The server's log says what; the question was not answered."
    ),
    "web-no-model": N_(
        "{model} has no shipped traces, and this server answers from those alone. On your own machine: "
        "pip install 'cardfit[trace]', then cardfit plan {model}"
    ),
    "web-not-shipped": N_(
        "{model}: the {field} asked for lies outside the shipped traces, from which this server answers. Take another, "
        "or ask on your own machine: pip install 'cardfit[trace]'"
    ),
    "web-extra": N_(
        "{package} is not installed. Pages and HTML files need the extra: pip install 'cardfit[web]'"
    ),
    # a file that is opened
    "web-page-open": N_("Open a file"),
    "web-open-file": N_("Open or drop a workflow, picture or plan file"),
    "web-open-go": N_("Open"),
    "web-open-about": N_(
        "A ComfyUI workflow (JSON, or a PNG or WEBP that ComfyUI wrote) or a plan file (YAML). It is read here and "
        "kept nowhere."
    ),
    "web-open-what": N_(
        "{name} is nothing that can be opened here. Give a ComfyUI workflow (JSON, or a PNG or WEBP that ComfyUI "
        "wrote) or a plan file (YAML)."
    ),
    "web-open-nothing": N_("No file came. Choose one first."),
    "web-open-form": N_("The form could not be read. Send one file in the field named file."),
    "web-open-asks": N_("The workflow does not say"),
    "web-open-answer": N_("Go on with these values"),
    "web-open-count": N_("{found}: give a whole number from 1 to {most}."),
    "web-open-from": N_("Where each value comes from"),
    "web-open-less": N_(
        "The configurator takes the largest pass, without the tiles and the scales of the files. "
        "With all of it: cardfit comfy plan"
    ),
    "web-workflow-open": N_(
        "The workflow does not say {count} values that a plan takes; they stand under missing. "
        "Give them as answers, by node.input."
    ),
    "label-runtime": N_("Runs in"),
    # the command serve
    "help-serve-host": N_("address to listen at; any other than this machine needs --token"),
    "help-serve-port": N_("port to listen at"),
    "help-serve-token": N_(
        "what visitors must show, at least 16 characters; CARDFIT_TOKEN does as well"
    ),
    "help-serve-allow-host": N_(
        "a name under which a proxy on this machine serves it; may be repeated"
    ),
    "help-serve-rate": N_("requests a second from one client; 0 sets no limit"),
    "help-serve-dry-runs": N_(
        "answer what the shipped traces do not hold with a dry run (slow; needs the trace extra)"
    ),
    "web-serving": N_("{address} (stop with Ctrl-C)"),
    "web-needs-token": N_(
        "--host {host} lets other machines ask. Give --token, or stay with this machine: --host 127.0.0.1"
    ),
    "web-short-token": N_("The token must have at least {least} characters, letters and digits."),
    "web-bad-port": N_("--port {port}: a port is a number from 1 to 65535."),
    "web-bad-rate": N_(
        "--rate {rate}: give the requests a second, as in --rate 20; 0 sets no limit."
    ),
    # the command report
    "help-report-file": N_("file of cardfit plan, sweep or compare with --json"),
    "help-report-output": N_("the file to write: .html or .md; .png or .svg for its charts"),
    "report-other-schema": N_(
        "{path}: schema {found}; a report is made of {wanted}. Make one with --json, as in: "
        "cardfit plan MODEL --json > plan.json"
    ),
    "report-no-chart": N_(
        "{path} holds nothing to draw: no run ended well, or there is one frame only."
    ),
    "picture-font": N_(
        "No font of this machine has the signs of the language {language}: the picture shows boxes. Install one, as in "
        "{font}; .svg and .html take the reader's fonts."
    ),
    "paper-foot": N_("cardfit {version}"),
    "report-bad-ending": N_("{asked}: give a file that ends in one of: {allowed}"),
    # the command site
    "help-site-output": N_("the folder to write; an earlier site in it is replaced with --force"),
    "help-site-models": N_(
        "models with commas between them; all with shipped traces when left out"
    ),
    "help-site-lang": N_("languages with commas between them; the first stands at the top"),
    "site-not-ours": N_(
        "{path} holds something else than a site of cardfit. Give an empty or a new folder."
    ),
    "site-exists": N_("{path} holds a site already. Replace it with --force, or give another."),
    "site-no-traces": N_(
        "{model} has no shipped traces, from which a site is made. See which have: cardfit models"
    ),
    "site-skipped": N_("{page} was left out: {why}"),
    "site-written": N_("{pages} pages written; begin at {file}"),
    "site-title": N_("Which card for which model"),
    "site-home": N_("All models"),
    "site-size": N_("Size"),
    "site-open": N_("Show every card"),
    "site-built": N_("Built {day} with the prices of: {offers}."),
    "site-shipped-offers": N_("cardfit's list"),
    # the frame on a host's page
    "help-serve-embed-origin": N_(
        "a site that may show /embed in a frame, as in https://host.example; may be repeated"
    ),
    "help-serve-embed-link": N_(
        "where a choice there leads: an address with {{card}}, and {{model}} if you like"
    ),
    "help-serve-embed-colour": N_("a colour there, as in accent=#0a7d4f; may be repeated"),
    "help-serve-embed-logo": N_("a picture there: .png, .svg or .webp"),
    "embed-needs-origin": N_(
        "Name the site that shows the frame: --embed-origin https://host.example"
    ),
    "embed-needs-offers": N_(
        "A frame shows the host's prices alone. Give them with --offers-file FILE.csv"
    ),
    "embed-bad-origin": N_(
        "--embed-origin {asked}: give scheme and name, without a path, as in https://host.example"
    ),
    "embed-bad-link": N_(
        "--embed-link {asked}: give an http or https address with {{card}} in it, and {{model}} if you like"
    ),
    "embed-bad-colour": N_("--embed-colour {asked}: give NAME=#rrggbb; names: {allowed}"),
    "embed-bad-logo": N_("{path}: a logo ends in one of {allowed} and has at most {most} bytes."),
    "embed-predicted": N_("predicted, {low}-{high}"),
    "embed-usable": N_("{usable} usable"),
    "embed-choose": N_("Choose"),
    "embed-about": N_(
        "Memory and time are predicted, not measured, by cardfit for exactly this model and size."
    ),
    # frame of every page
    "web-skip": N_("to the content"),
    "web-pages": N_("pages"),
    "web-language": N_("language"),
    "web-page-plan": N_("Which card"),
    "web-page-accuracy": N_("Accuracy"),
    "web-page-records": N_("Measured"),
    "web-page-autopsy": N_("Why did it fail"),
    "web-foot": N_(
        "cardfit {version}. Predicted, not measured, unless it says so. Prices show their age and their provider."
    ),
    "web-to-start": N_("To the configurator"),
    # the form
    "web-ask": N_("what is asked"),
    "web-jump": N_("To the cards"),
    "web-results": N_("the answer"),
    "web-group-make": N_("What you make"),
    "web-group-run": N_("How it runs"),
    "web-group-place": N_("Where it runs"),
    "web-group-pictures": N_("Pictures"),
    "web-group-videos": N_("Videos"),
    "web-group-elsewhere": N_("Not answered here (needs the trace extra)"),
    "web-presets": N_("sizes it was made for"),
    "web-go": N_("Show the cards"),
    "label-model": N_("Model"),
    "label-task": N_("Task"),
    "label-width": N_("Width"),
    "label-height": N_("Height"),
    "label-num_frames": N_("Frames"),
    "label-fps": N_("Frames a second"),
    "label-num_inference_steps": N_("Steps"),
    "label-batch": N_("Outputs at once"),
    "label-dtype": N_("Precision"),
    "label-quantization": N_("Denoiser weights"),
    "label-offload": N_("Offload"),
    "label-vae_tiling": N_("VAE tiling"),
    "label-vae_slicing": N_("VAE slicing"),
    "label-card": N_("I have this card"),
    "label-ram": N_("Host RAM"),
    "label-os": N_("Operating system"),
    "label-hours_per_week": N_("Hours a week"),
    "label-hourly": N_("Price of an hour"),
    "label-monthly": N_("Price of a month"),
    "label-outputs_per_month": N_("Outputs a month"),
    "label-own_price": N_("Price of a card of your own"),
    "label-price": N_("At most"),
    "label-vendor": N_("Vendor"),
    "label-encodes": N_("Encodes in hardware"),
    "label-sort": N_("Sorted by"),
    "web-open": N_("choose for me"),
    "web-auto": N_("auto"),
    "web-on": N_("on"),
    "web-off": N_("off"),
    "web-any": N_("any"),
    "web-dtype-recommended": N_("as recommended"),
    "web-scheme-none": N_("full precision"),
    "choice-offload-none": N_("none: all on the card"),
    "choice-offload-model": N_("one component at a time"),
    "choice-offload-group-block": N_("groups of blocks"),
    "choice-offload-group-leaf": N_("layer by layer, in groups"),
    "choice-offload-sequential": N_("layer by layer, one at a time"),
    "web-every-card": N_("no, show every card"),
    "web-card-of": N_("{card}, {memory} GB"),
    "web-ram-open": N_("as each offer has it"),
    "choice-os-linux": N_("Linux"),
    "choice-os-windows": N_("Windows"),
    "choice-codec-h264": N_("H.264"),
    "choice-codec-hevc": N_("HEVC"),
    "choice-codec-av1": N_("AV1"),
    "choice-sort-plan": N_("cheapest that holds it"),
    "choice-sort-time": N_("time"),
    "choice-sort-cost": N_("cost per output"),
    "choice-sort-price": N_("price"),
    "choice-sort-memory": N_("memory"),
    "web-not-here": N_("not in the shipped traces of this server"),
    # the answer
    "web-pending": N_("Working it out. The first answer for a size can take some seconds."),
    "web-again": N_("Look again"),
    "web-not-answered": N_("Change what is marked, then the cards are shown again."),
    "web-nothing-left": N_("No card is left under these filters."),
    "web-as-json": N_("as JSON"),
    "web-copy": N_("Copy"),
    "web-copied": N_("Copied"),
    "web-notes": N_("Notes"),
    "view-band": N_("{low} to {high}"),
    "view-dot": N_("{card}: {time}, {cost} per output, {settings}"),
    "view-line": N_("{card}: {usable} usable"),
    "view-decides": N_("decides"),
    "view-bar": N_("weights {weights}, working {working}, allocator {allocator}"),
    "view-cards": N_("Cards"),
    "view-alike": N_("and {count} dearer alike"),
    "view-peak-of": N_("{peak} of {usable}"),
    "view-pareto": N_("Time against cost"),
    "view-pareto-about": N_(
        "Each dot is a card that holds it. On the dashed line nothing is both quicker and cheaper. Both axes are "
        "logarithmic."
    ),
    "view-axis-time": N_("time per run"),
    "view-axis-cost": N_("cost per output"),
    "view-stages": N_("Memory, stage by stage"),
    "view-stages-resident": N_(
        "With everything on the card, unless settings were given. Each card below has settings of its own."
    ),
    "view-count": N_("{holding} of {count} cards hold it"),
    "view-every": N_("Show each of the {count} cards"),
    "view-fewer": N_("Show fewer"),
    # terms, each with one line
    "term-stage": N_("stage"),
    "about-stage": N_(
        "A part of one run: loading, encoding the prompt, denoising, decoding. The highest decides what card it takes."
    ),
    "term-weights": N_("weights"),
    "about-weights": N_(
        "The model's own numbers, as many of them as lie on the card in that stage."
    ),
    "term-working": N_("working memory"),
    "about-working": N_(
        "Tensors and workspaces that exist only while something is computed. They grow with size and frames."
    ),
    "term-allocator": N_("allocator"),
    "about-allocator": N_(
        "What PyTorch's allocator holds back beyond what tensors use. The card cannot give it to anybody else."
    ),
    "term-peak": N_("peak"),
    "about-peak": N_(
        "The most memory that PyTorch reserves at any moment of the stage. The CUDA context comes on top."
    ),
    "term-band": N_("could be"),
    "about-band": N_(
        "Where the true figure lies, as far as published measurements tell: low and high end."
    ),
    "term-verdict": N_("verdict"),
    "about-verdict": N_(
        "Fits: even the high end is inside. Tight: the likely value is inside, the high end is not. Slower and lossy "
        "say at what price it fits."
    ),
    "term-settings": N_("settings, or why not"),
    "about-settings": N_(
        "What must be set so that the verdict is true; where nothing helps, what stops it."
    ),
    "term-against": N_("peak of usable"),
    "about-against": N_(
        "What the run reserves against what the card has for it: its memory less the CUDA context."
    ),
    "term-time": N_("time"),
    "about-time": N_(
        "Seconds of one run in these settings, fitted to published times. Hover for low and high."
    ),
    "term-cost": N_("per output"),
    "about-cost": N_(
        "The price of the offer for the time that one output takes. Start-up and waiting are not in it."
    ),
    "term-price": N_("price"),
    "about-price": N_(
        "The cheapest offer known for one card, with its provider and the age of the figure in days."
    ),
    "term-offload": N_("offload"),
    "about-offload": N_(
        "Weights wait in the host's RAM while they are not used. Needs less of the card and more time."
    ),
    "term-tiling": N_("tiling"),
    "about-tiling": N_(
        "The VAE decodes the picture in overlapping tiles. Needs far less memory; seams are possible."
    ),
    "term-headroom": N_("to spare"),
    "about-headroom": N_("Usable memory less the peak. Zero is not enough: see the band."),
    "term-host": N_("host RAM"),
    "about-host": N_(
        "What the machine beside the card must have: weights that wait, pinned copies, frames before export."
    ),
    # one card
    "web-back": N_("all cards"),
    "view-stages-set": N_("In the settings of this card: {settings}."),
    "view-knobs": N_("What a change would do"),
    "view-change": N_("change"),
    "view-rent": N_("By the hour, by the month, or your own"),
    "view-output": N_("output {number}"),
    "view-offers": N_("Offers"),
    "view-disk": N_("on disk"),
    "view-power": N_("board power"),
    "view-nvenc": N_("encodes"),
    "view-nvdec": N_("decodes"),
    "view-no-engine": N_("nothing: it has no such engine"),
    "view-do-run": N_("measure it on the machine at hand, without weights"),
    "view-do-rent": N_("by the hour or by the month"),
    # accuracy
    "view-accuracy-about": N_(
        "Each figure was published by somebody else, with the settings that made it. General rules rebuild the run "
        "from them; nothing is fitted to the outcome. Errors are predicted against measured."
    ),
    "view-scatter": N_("Predicted against measured"),
    "view-scatter-about": N_("On the line the two are the same. Both axes are logarithmic."),
    "view-scatter-dot": N_("{model}, {kind}: measured {measured}, predicted {predicted} ({error})"),
    "view-axis-measured": N_("measured"),
    "view-axis-predicted": N_("predicted"),
    # records
    "view-records-about": N_(
        "Runs that were measured on this store's machines. The command line writes them: cardfit run, cardfit sweep."
    ),
    "view-compare": N_("Compare two"),
    "view-compare-pick": N_("Mark two runs, then compare them."),
    "view-mark": N_("mark {id}"),
    # autopsy
    "view-autopsy-about": N_(
        "Paste an error message, a traceback or a log. It is read here and kept nowhere."
    ),
    "label-text": N_("Error text"),
    "web-autopsy-model": N_("Model, where the text does not name it"),
    "web-autopsy-open": N_("as the text says"),
    "web-autopsy-go": N_("Find the cause"),
    "web-autopsy-empty": N_("Paste the text of an error first."),
    "view-cures": N_("What helps, best first"),
    "view-evidence": N_("What it rests on"),
}
