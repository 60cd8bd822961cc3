"""Sentences of the room `media`: what is wrong with a file, what was written, and what codecs cannot do here."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "ingest-too-short": N_(
        "{path} has {found} frames and the run takes {asked}. Give longer footage, or fewer frames with --num-frames"
    ),
    "ingest-no-nvdec": N_(
        "{path} cannot be decoded on a card here ({why}). Leave the engine open: the processor decodes it. "
        "cardfit codecs says what this machine can do"
    ),
    "media-needs-av": N_(
        "Pictures and videos need {package}, which is not installed. Install it: pip install 'cardfit[quality]'"
    ),
    "media-unreadable": N_("{path} cannot be read: {why}. Check the path."),
    "media-not-footage": N_("{path} is neither a picture nor a video that can be read: {why}."),
    "media-format": N_(
        "{path} is of the format {found}, which is not read because it can name other files or is not footage. Give a "
        "picture, a folder of pictures, or a video such as MP4, MOV, MKV, WebM or AVI."
    ),
    "media-no-video": N_("{path} holds no picture: give a file with a video stream."),
    "media-no-frames": N_(
        "{path} holds no pictures. A folder of frames has files that end in {allowed}."
    ),
    "media-too-many-frames": N_("{path} holds {found} pictures; at most {limit} are read."),
    "media-too-large": N_("{path} is {found} pixels; at most {side} a side are read."),
    "media-frame-broken": N_(
        "{path} is damaged at frame {frame}: {why}. Write it again, or give another file."
    ),
    "media-frame-size": N_(
        "{path} has {found} pixels at frame {frame}; the first frame has {first}. All must agree."
    ),
    "media-truncated": N_(
        "{path} ends early: it states {stated} frames and holds {found}. Write it again."
    ),
    "media-not-written": N_("{path} cannot be written: {why}. Nothing was left under that name."),
    # export
    "export-no-output": N_("say what to write {path} to, as in: cardfit export {path} out.mp4"),
    "export-bad-field": N_(
        "{asked}: {part} is not understood. After the path come NAME=VALUE with commas; names are {allowed}. Try: "
        "small.mp4,codec=hevc,height=480"
    ),
    "export-bad-value": N_("{asked}: {field} cannot be {value}; allowed: {allowed}"),
    "export-bad-container": N_(
        "{asked}: the file must end in one of {allowed}, which says the container."
    ),
    "export-bad-pair": N_(
        "{path}: {container} does not hold {codec}, or players do not expect it there. It holds {allowed}; {codec} "
        "goes into {others}."
    ),
    "export-bad-fps": N_("--fps {asked}: give frames a second above 0 and at most {most}."),
    "export-needs-fps": N_(
        "{path} is pictures and states no fps: say how fast they play, as in --fps 16"
    ),
    "export-same-name": N_(
        "{path} would be written twice or over its own source. Give every file its own name."
    ),
    "export-exists": N_("{path} exists. Name another file, or write over it with --force."),
    "export-no-folder": N_("{path} cannot be written: there is no folder {folder}."),
    "export-no-encoder": N_(
        "{path}: the encoder {encoder} cannot be opened here: {why}. See what works: cardfit codecs"
    ),
    "export-encoder-failed": N_(
        "{path}: {encoder} failed at frame {frame}: {why}. Nothing was left under that name."
    ),
    "export-not-whole": N_(
        "{path} was written but does not hold what it should ({what}: meant {meant}, found {found}); is the disk full? "
        "Nothing was left under that name."
    ),
    "export-refitted": N_(
        "the source plays at {source_fps} frames a second, the files at {fps}: the duration is kept, {decoded} frames "
        "became {written}. No frame was interpolated."
    ),
    "export-even": N_(
        "{path}: {source} has an odd side and yuv420p needs even ones; the last line was cut: {size}"
    ),
    "export-eight-bits": N_("the source has {bits} bits a component; files are written with 8"),
    "export-warn-hevc": N_(
        "{path}: HEVC plays in Safari, and elsewhere only where the machine decodes it; give browsers H.264 or AV1"
    ),
    "export-warn-av1": N_(
        "{path}: AV1 does not play on Apple machines without an AV1 decoder (before A17, M3)"
    ),
    "export-warn-mkv": N_("{path}: browsers do not play Matroska; give them .mp4 or .webm"),
    "export-warn-mov": N_("{path}: some browsers do not play .mov; give them .mp4"),
    "export-warn-profile": N_(
        "{path}: browsers do not play the profile {profile}; leave crf above 0"
    ),
    "export-warn-index": N_(
        "{path}: the index is at the end, so it plays only when all of it has arrived"
    ),
    "export-progress": N_("{frames} frames written"),
    "export-progress-check": N_("reading the files back"),
    "export-head": N_("{frames} frames at {fps:g} a second, {seconds:.2f} s, from {source}"),
    "export-col-file": N_("file"),
    "export-col-size": N_("size"),
    "export-col-codec": N_("codec"),
    "export-col-pixels": N_("pixels"),
    "export-col-checked": N_("read back"),
    "export-checked": N_("{frames} frames, {pixel_format}, {profile}{audio}"),
    "export-sound": N_(", sound {codec}"),
    "help-export-in": N_("picture, folder of frames or video"),
    "help-export-out": N_(
        "files to write, each PATH[,codec=h264|hevc|av1][,crf=N][,preset=P][,width=N][,height=N][,engine=cpu|nvenc]"
    ),
    "help-export-fps": N_(
        "frames a second of the files; pictures need it, a video keeps its duration"
    ),
    # codecs
    "codecs-progress": N_("trying {name}"),
    "codecs-no-stream": N_("there is nothing to decode: no encoder for it works"),
    "codecs-no-nvml": N_("which card is here was not asked: pip install 'cardfit[run]'"),
    "codecs-no-card": N_("no NVIDIA card or driver was found here"),
    "codecs-software": N_(
        "no H.264 encoder on a card here: export with {name}, which writes {speed} frames of 1280x720 a second on this "
        "machine. Beside minutes of sampling that rarely matters."
    ),
    "codecs-faster": N_(
        "{name} writes {ratio} times as many frames a second as {software}; that matters where many clips are exported "
        "or processors are few, not beside minutes of sampling"
    ),
    "codecs-slower": N_(
        "{name} writes {ratio} times as many frames a second as {software} here, so it saves processors and no time"
    ),
    "codecs-unexpected": N_(
        "{name} should work on this card by the table of codecs and does not: the cause is the machine, not the card"
    ),
    "codecs-why-no_engine": N_(
        "{card} has no video encoder or it is switched off; no driver changes that. Use the software encoder."
    ),
    "codecs-why-codec_not_on_card": N_(
        "the engine of {card} does not do {codec}. Use another codec, or software for this one."
    ),
    "codecs-why-no_driver": N_(
        "no NVIDIA driver can be loaded ({detail}). Use software, or a machine with a card."
    ),
    "codecs-why-no_runtime": N_(
        "the driver is not given to this container ({detail}). Start it with --gpus all, NVIDIA_VISIBLE_DEVICES=all "
        "and NVIDIA_DRIVER_CAPABILITIES=all; nvidia-smi must work inside."
    ),
    "codecs-why-no_video_capability": N_(
        "the driver's video library is not here ({detail}; NVIDIA_DRIVER_CAPABILITIES is {capabilities}). In a "
        "container add the capability video; on a plain machine install the driver's encode and decode libraries."
    ),
    "codecs-why-driver_too_old": N_(
        "the driver is older than this build asks: it needs NVENC API {needs_api} and finds {found_api}; driver "
        "{needs_driver} (Linux / Windows) or newer has it. Where the driver is fixed, take an older PyAV or FFmpeg."
    ),
    "codecs-why-session_limit": N_(
        "all encoding sessions of the card are taken ({detail}); this is not a lack of memory. Run fewer exports at a "
        "time."
    ),
    "codecs-why-pixel_format": N_(
        "the engine does not take this pixel format ({detail}). Convert to yuv420p."
    ),
    "codecs-why-not_in_build": N_(
        "this build of FFmpeg has no {name}. Install PyAV's own wheel: pip install av"
    ),
    "codecs-why-other": N_("it failed: {detail}"),
    "codecs-head": N_("{card} · driver {driver} · PyAV {av}, FFmpeg {ffmpeg}"),
    "codecs-head-none": N_("no card · PyAV {av}, FFmpeg {ffmpeg}"),
    "codecs-col-name": N_("name"),
    "codecs-col-role": N_("does"),
    "codecs-col-codec": N_("codec"),
    "codecs-col-speed": N_("frames/s"),
    "codecs-col-found": N_("found"),
    "codecs-role-encode": N_("encodes"),
    "codecs-role-decode": N_("decodes"),
    "codecs-works": N_("works"),
    "codecs-use": N_("to write {codec} use {name}"),
    "codecs-use-none": N_("nothing here writes {codec}"),
}
