"""Sentences of `cardfit assign`: what can be wrong with its files, what came out, its page and flags."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # the file of shots
    "shots-not-a-list": N_(
        "{path}: found {found}, needs a list of shots, or the key shots with the list below it."
    ),
    "shots-no-list": N_("{path}: no shots. List at least one, each with id and model."),
    "shots-too-many": N_("{path}: {found} shots, and {allowed} are allowed. Split the file."),
    "shots-not-a-shot": N_("{where}found {found}, needs a shot: a mapping with id and model."),
    "shots-not-a-sequence": N_(
        "{where}{name}: found {found}, needs a mapping, as in opening: {{keep_same_card: true}}"
    ),
    "shots-not-diffusers": N_(
        "{where}{id} asks for runtime {found}; shots are assigned as diffusers runs them. Leave runtime out."
    ),
    "shots-twice": N_("{path}: the id {id} stands twice. Give each shot its own."),
    "shots-empty-sequence": N_(
        "{path}: no shot belongs to the sequence {name}. Sequences that shots name: {known}"
    ),
    "shots-bad-time": N_("give a date or a time, as in 2026-12-11 or 2026-12-11 18:00"),
    # the file of machines
    "farm-not-a-list": N_(
        "{path}: found {found}, needs a list of machines, or the key machines with the list below it."
    ),
    "farm-no-list": N_("{path}: no machines. List at least one, each with name and probe or card."),
    "farm-too-many": N_("{path}: {found} machines, and {allowed} are allowed. Split the file."),
    "farm-not-a-machine": N_(
        "{where}found {found}, needs a machine: a mapping with name, and probe or card."
    ),
    "farm-probe-or-card": N_(
        "{where}{name} needs either probe (a file of cardfit probe --json) or card, not both."
    ),
    "farm-probe-says": N_("{where}{name}: the probe says {fields} already. Leave it out."),
    "farm-twice": N_("{path}: the name {name} stands twice. Give each machine its own."),
    "farm-bad-card": N_("{where}{why}"),
    "farm-bad-size": N_("{where}{asked} is not a size. Give a number with a unit, as in 64GB"),
    "farm-bad-daily": N_("{where}daily is {asked}; give hours, as in 19:00-08:00"),
    "farm-no-card": N_(
        "{path}: the probe found no NVIDIA card. Leave this machine out, or probe it where its driver is."
    ),
    # why a shot may not run somewhere, or has no place
    "assign-tight-refused": N_("{why} Allowed with --allow-tight."),
    "assign-lossy-refused": N_("it needs {settings}, which --lossless refuses."),
    "assign-nowhere": N_("fits on no machine. Nearest, {card}: {why}"),
    "assign-no-time": N_(
        "fits on {cards}, but nobody knows how long it takes there, so it is not scheduled."
    ),
    "assign-no-hours": N_(
        "fits on {cards}, but in none of their hours are its runs done. Give them longer hours."
    ),
    "assign-no-one-kind": N_(
        "no one kind of card holds every shot of {sequence}. Drop keep_same_card, or change its largest shot."
    ),
    # the sum
    "assign-placed": N_("{placed} of {count} shots have a place."),
    "assign-late": N_("{count} come late: {shots}."),
    "assign-may-be-late": N_("{count} may come late, if times are at their high end: {shots}."),
    "assign-no-place": N_("{count} have none: {shots}."),
    "assign-rent": N_(
        "Rent: one {card} for {hours} h ({cost} at {provider}) makes {shots} and keeps their deadlines, "
        "done {done}."
    ),
    "assign-rent-late": N_(
        "Rent: one {card} for {hours} h ({cost} at {provider}) makes {shots}, done {done}; still late: {late}."
    ),
    "assign-rent-none": N_("No one card that is offered by the hour takes all of these."),
    # notes
    "assign-ram-unknown": N_(
        "Host RAM is not known, so it is not held against settings that take it: {machines}. Give ram, or a probe."
    ),
    "assign-ram-shared": N_(
        "The cards of one machine share its host RAM, which does not hold these settings on all of them at once, so "
        "some work waits on: {machines}."
    ),
    "assign-never-free": N_("No free hours from the start on: {machines}."),
    "assign-load-unknown": N_(
        "Loading is not counted where a disk's rate is not known; a probe measures it."
    ),
    "assign-heuristic": N_(
        "The schedule is a heuristic (several orders tried, each shot where it is done first): good, not proven best."
    ),
    "assign-download-assumed": N_(
        "Fetching files to a rented card counts at {rate}, an assumption."
    ),
    "assign-progress": N_("{at} of {count}: {what}"),
    # the page
    "assign-until": N_(
        "{shots} shots on {cards} cards from {start}, done {done}, at worst {worst}"
    ),
    "assign-until-open": N_("{shots} shots on {cards} cards from {start}, done {done}"),
    "assign-nothing-placed": N_("{shots} shots on {cards} cards from {start}"),
    "assign-col-shot": N_("shot"),
    "assign-col-where": N_("where"),
    "assign-col-begins": N_("begins"),
    "assign-col-done": N_("done"),
    "assign-col-deadline": N_("deadline"),
    "assign-col-machine": N_("machine"),
    "assign-col-busy": N_("busy"),
    "assign-col-idle": N_("idle"),
    "assign-late-by": N_("{deadline}, {late} late"),
    "assign-no-place-head": N_("No place"),
    "assign-cost": N_("Cost at the machines' own prices: {money}"),
    "assign-axis-time": N_("time"),
    "assign-chart-extra": N_(
        "A chart needs {package}, which is not installed. Install it: pip install 'cardfit[web]'"
    ),
    # a sample elsewhere
    "skypilot-head": N_(
        "{model}, a sample with random weights, for SkyPilot. Cards by the cost of an output, least first:"
    ),
    "skypilot-card": N_("- {card}: {settings}; its time or price is not known"),
    "skypilot-card-cost": N_(
        "- {card}: {settings}; about {seconds} a run, {cost} an output at {price} an hour ({provider}, {as_of}); "
        "this sample about {sample}, setting up aside"
    ),
    "skypilot-no-name": N_(
        "Left out, SkyPilot has no name for them (--as ssh runs there): {cards}"
    ),
    "skypilot-no-cost": N_("Left out, the cost of an output is not known: {cards}"),
    "skypilot-dear": N_(
        "Left out, an output costs more than {times:g} times the least, and SkyPilot goes by the hour: {cards}"
    ),
    "skypilot-launch": N_(
        "Nothing is launched by this. Launch: sky launch -c cardfit FILE; the machine plans for its own card first and "
        "is taken down when idle."
    ),
    "skypilot-no-card": N_(
        "{model}: no card that SkyPilot has a name for surely fits, so there is no task. See: cardfit plan {model} "
        "--all, or --as ssh for a host of your own."
    ),
    "ssh-head": N_(
        "{model}, a sample with random weights on a host of your own. Run: sh FILE user@host. It plans for the host's "
        "card first and brings record.json back. Expected:"
    ),
    "ssh-no-card": N_("- no card of this answer surely fits, so it will end after planning"),
    # flags
    "help-shots": N_("YAML file of shots"),
    "help-farm": N_("YAML file of machines"),
    "help-start": N_("when work may begin, as in 2026-12-07T18:00; now when left out"),
    "help-allow-tight": N_("shots may go where they are likely, though not surely, inside"),
    "help-lossless": N_("only settings that leave the picture as it is: no tiles, no fewer bits"),
    "help-assign-chart": N_("write a chart: a name ending in .png, .svg or .html"),
    "help-csv": N_("print what each shot needs, a row for each card that it may use, as CSV"),
    "help-assign-check": N_("exit with 1 when a shot has no place or comes late"),
    "assign-bad-start": N_("--start {asked}: give a date or a time, as in 2026-12-07T18:00"),
}
