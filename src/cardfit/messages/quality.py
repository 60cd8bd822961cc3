"""Sentences of the room `quality`: what is compared, what was found, and what a score does not say."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "quality-needs-extra": N_(
        "Comparing needs {package}, which is not installed. Install it: pip install 'cardfit[quality]'"
    ),
    "quality-needs-flip": N_(
        "FLIP needs {package}, which is not installed, so it was left out. Install it: pip install 'cardfit[quality]'"
    ),
    "quality-no-filter": N_(
        "The FFmpeg inside PyAV ({version}) has no filter {name}. Leave --metric {name} out, or install another build."
    ),
    "quality-bad-metric": N_(
        "--metric {asked}: not known. Beside PSNR and SSIM there are {allowed}."
    ),
    "quality-too-small": N_("Both sides of both pictures must have at least {least} pixels."),
    "quality-bad-tile": N_(
        "--tile {tile} --overlap {overlap}: a tile has at least {least} pixels and more than its overlap, which is not "
        "below 0. Try: --tile 256 --overlap 64"
    ),
    "quality-overlap-alone": N_("--overlap needs --tile, as in --tile 256 --overlap 64"),
    "quality-bad-lines": N_(
        "{flag} {asked}: give whole pixels above 0 with commas, as in {flag} 192,384"
    ),
    "quality-bad-chunk": N_("--chunk {asked}: a chunk has at least 1 frame, as in --chunk 8"),
    "quality-bad-edges": N_(
        "--edges {asked}: give the frames at which a chunk begins, counted from 0, with commas, as in --edges 49,98"
    ),
    "quality-differ-size": N_(
        "{candidate} is {second}, {reference} is {first}: pixels cannot be paired. Compare equal sizes, or scale the "
        "candidate with --align."
    ),
    "quality-differ-frames": N_(
        "{candidate} has {second} frames, {reference} has {first}. Compare equal lengths, or only the frames that both "
        "have with --align."
    ),
    "quality-differ-fps": N_(
        "{candidate} plays at {second} frames a second, {reference} at {first}: the same frame is another moment. "
        "Compare equal fps, or pair frames in order with --align."
    ),
    "quality-ends-early": N_(
        "{path} ends after {frames} frames, {other} goes on. Compare equal lengths, or only the frames that both have "
        "with --align."
    ),
    "quality-aligned-size": N_(
        "the candidate was scaled from {second} to {first}, which costs sharpness by itself"
    ),
    "quality-aligned-frames": N_(
        "only the frames that both have were compared: the reference has {first}, the candidate {second}"
    ),
    "quality-aligned-fps": N_(
        "frames were paired in order although the reference plays at {first} a second and the candidate at {second}"
    ),
    "quality-diverged": N_(
        "the two show different compositions ({composition} of 1, below {limit}): the settings sent the sampler to "
        "another picture, so PSNR, SSIM and FLIP say nothing about quality. Judge each by eye, or compare decodes of "
        "the same latents."
    ),
    "quality-soft": N_(
        "the candidate is softer: {percent} % of the reference's finest detail and grain"
    ),
    "quality-grainy": N_(
        "the candidate is grainier: {percent} % of the reference's finest detail and grain"
    ),
    "quality-no-grid": N_(
        "seams were not looked for: say where tiles meet with --tile and --overlap"
    ),
    "quality-grid-empty": N_("no seam can be judged: the picture is no larger than a tile or two"),
    "quality-seam-in-both": N_(
        "the seam is in the reference too: it does not come from what differs between the two"
    ),
    "quality-no-edges": N_(
        "chunk edges were not looked for: say where chunks begin with --chunk or --edges"
    ),
    "quality-edges-empty": N_(
        "no chunk edge can be judged: the clip has too few frames beside the edges"
    ),
    "quality-no-output": N_(
        "record {record} kept no output. Measure it again with --keep-outputs, or compare files"
    ),
    "quality-output-gone": N_("the output that the record names is gone: {path}. Measure it again"),
    "quality-first-clip": N_("of {count} clips of a batch the first was compared"),
    "quality-other-request": N_(
        "the two records were asked for different things ({names}): what differs in the picture is not the settings' "
        "doing alone"
    ),
    "quality-other-inputs": N_("the two records had different prompts or input pictures"),
    "quality-other-weights": N_("the two records had different weights"),
    "quality-progress": N_("{frames} frames compared"),
    # the page
    "quality-head": N_("{candidate} against {reference}"),
    "quality-what": N_("{size} · {frames} frames"),
    "quality-row-psnr": N_("PSNR"),
    "quality-row-ssim": N_("SSIM"),
    "quality-row-flip": N_("FLIP"),
    "quality-row-xpsnr": N_("XPSNR"),
    "quality-row-vif": N_("VIF"),
    "quality-row-composition": N_("layout"),
    "quality-row-fine": N_("detail"),
    "quality-row-seams": N_("seams"),
    "quality-row-edges": N_("chunk edges"),
    "quality-row-flicker": N_("flicker"),
    "quality-row-worst": N_("worst"),
    "quality-identical": N_("every frame is identical"),
    "quality-psnr": N_("{value:.2f} dB"),
    "quality-ssim": N_("{value:.4f}, lowest {lowest:.4f}"),
    "quality-plain": N_("{value:.4f}"),
    "quality-composition": N_("{value:.2f} of 1"),
    "quality-composition-diverged": N_("{value:.2f} of 1: another picture"),
    "quality-fine": N_("{percent:.0f} % of the reference"),
    "quality-flicker": N_("{percent:.2f} % of brightness from frame to frame"),
    "quality-worst": N_("frame {frame}, SSIM {ssim:.4f}, at x {x}, y {y}"),
    "quality-seam-none": N_(
        "none: {lines} lines, the strongest {score:.1f} deviations of shifted grids, {limit:g} is a seam"
    ),
    "quality-seam-found": N_(
        "SEAM at {place}: about {step:.1f} levels of 255, {score:.1f} deviations of shifted grids"
    ),
    "quality-seam-column": N_("column {line}, rows {first} to {last}"),
    "quality-seam-row": N_("row {line}, columns {first} to {last}"),
    "quality-edge-none": N_(
        "none: {edges} edges, the strongest {score:.1f} deviations, {limit:g} is an edge"
    ),
    "quality-edge-brightness": N_(
        "STEP of brightness at frame {frame}: {percent:.1f} %, {score:.1f} deviations, {found} of {edges} edges"
    ),
    "quality-edge-jump": N_(
        "JUMP of the picture at frame {frame}: {percent:.0f} % more change than around it, {score:.1f} deviations, "
        "{found} of {edges} edges"
    ),
    "quality-not-known": N_("not known"),
    "quality-report-at": N_("report: {file}"),
    "quality-report-exists": N_(
        "{path} holds a report already. Name another folder, or write over it with --force."
    ),
    "quality-title": N_("Comparison"),
    "quality-html-lowest": N_("SSIM of every frame"),
    "quality-caption-reference": N_("reference, frame {frame}"),
    "quality-caption-candidate": N_("candidate, frame {frame}"),
    "quality-caption-ssim": N_("where they differ: bright is low SSIM"),
    "quality-caption-flip": N_("where an eye sees it: bright is high FLIP"),
    "quality-caption-spot": N_(
        "the worst spot, {side} pixels wide: reference left, candidate right"
    ),
    "quality-caption-seam": N_(
        "the worst seam in the middle, contrast stretched: mean of all frames"
    ),
    # help
    "help-compare-reference": N_(
        "picture, folder of frames, video, or record that kept its output, to compare with"
    ),
    "help-compare-candidate": N_(
        "picture, folder of frames, video, or record that kept its output, to judge"
    ),
    "help-compare-tile": N_("side of a VAE tile in pixels: look for seams on that grid"),
    "help-compare-overlap": N_("overlap of tiles in pixels"),
    "help-compare-lines-x": N_("columns at which tiles meet, as in 192,384: instead of --tile"),
    "help-compare-lines-y": N_("rows at which tiles meet: instead of --tile"),
    "help-compare-chunk": N_(
        "frames of a decode chunk, temporal tile or window: look for its edges"
    ),
    "help-compare-first-chunk": N_("frames of the first chunk, where it differs"),
    "help-compare-edges": N_("frames at which chunks begin, as in 49,98: instead of --chunk"),
    "help-compare-align": N_(
        "compare what both have: scale the candidate, leave surplus frames out"
    ),
    "help-compare-metric": N_("flip, xpsnr or vif for every frame as well; can be repeated"),
    "help-compare-report": N_(
        "write a page with pictures of the worst frame and spot to this folder"
    ),
}
