"""Sentences of `cardfit rent`: the verdict and its reason, break-evens, what to ask, flags and refusals."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # ways
    "rent-way-monthly": N_("monthly"),
    "rent-way-hourly_stop": N_("hourly with stop"),
    "rent-way-hourly_destroy": N_("hourly with destroy"),
    "rent-way-api": N_("the API"),
    "rent-way-own": N_("a card of your own"),
    # verdicts
    "rent-do-monthly": N_("Rent by the month."),
    "rent-do-hourly_stop": N_("Rent by the hour and stop the machine between sessions."),
    "rent-do-hourly_destroy": N_("Rent by the hour, destroy the machine after each session."),
    "rent-do-api": N_("Don't rent: use the API."),
    "rent-do-own": N_("Don't rent: use a card of your own."),
    "rent-do-open": N_("Not decided."),
    "rent-why-monthly": N_(
        "{cost} a month, {other_cost} for the next ({other}): it exists for so many hours that the hour is dearer."
    ),
    "rent-why-hourly_stop": N_(
        "{cost} a month with the disk kept, {other_cost} for the next ({other})."
    ),
    "rent-why-hourly_destroy": N_(
        "{cost} a month, {other_cost} for the next ({other}), for {lost} hours a month of starting "
        "and downloading."
    ),
    "rent-why-api": N_(
        "{outputs} outputs a month cost {cost} there; the next, {other}, costs {other_cost}."
    ),
    "rent-why-own": N_(
        "Spread over {life} months, with energy, the card costs {cost} a month; the next, {other}, costs "
        "{other_cost}."
    ),
    "rent-why-private": N_(
        "The data must not leave: nothing that stands elsewhere was considered. Check with cardfit matrix what "
        "your card holds."
    ),
    "rent-why-waiting": N_(
        "{cost} a month. Destroying it each time would save {saved} a month and lose {lost} hours to starting "
        "and downloading, less than those hours of the machine are worth."
    ),
    "rent-why-close": N_(
        "{cost} a month, {other_cost} for {other}: nearly the same, so choose what is less trouble."
    ),
    "rent-why-uncounted": N_("{why} Part of its bill is not known (see the notes): it may turn."),
    "rent-why-and-even": N_("{why} {even}"),
    "rent-why-even": N_("It depends on the use. {even} Give --hours-per-week."),
    "rent-why-no-use": N_(
        "How long the machine must exist is not known. Give --hours-per-week, or --outputs with --seconds."
    ),
    "rent-why-one": N_(
        "There is one price to look at, or fewer. Give more of --monthly, --hourly, --api-price, --own-price."
    ),
    # why a way has no cost
    "rent-no-use": N_("needs --hours-per-week, or --outputs with --seconds"),
    "rent-no-download": N_("needs --library and --down"),
    "rent-no-outputs": N_("needs --outputs, or --hours-per-week with --seconds"),
    "rent-no-life": N_("needs --own-life"),
    "rent-no-time": N_("needs {hours} hours a month with its downloads; a month has {most}"),
    "rent-cannot-stop": N_("{provider} cannot stop a machine, only end it"),
    # break-evens
    "rent-even-hours": N_(
        "From {hours} hours a month ({week} a week) that the machine exists, {one} is cheaper than {other}."
    ),
    "rent-even-hours-outputs": N_(
        "From {hours} hours a month ({week} a week) that the machine exists, or {outputs} outputs, {one} is cheaper "
        "than {other}."
    ),
    "rent-even-always": N_(
        "However short the use, {one} is cheaper than {other}: the disk alone costs as much."
    ),
    "rent-even-never-hours": N_(
        "However long the use, {one} is not cheaper than {other}: that would take {hours} hours a month of {most}."
    ),
    "rent-even-outputs": N_("From {outputs} outputs a month, {one} is cheaper than {other}."),
    "rent-even-never-outputs": N_(
        "However many outputs, {one} is not cheaper than {other}: each of them costs more."
    ),
    "rent-even-too-slow": N_(
        "{other} stays cheaper than {one}: {outputs} outputs a month would make it even, and one card makes {most}."
    ),
    "rent-even-months": N_(
        "After {months} months, at {saved} a month, {one} has paid for itself against {other}."
    ),
    "rent-even-months-too-late": N_(
        "At {saved} a month, {one} would pay for itself against {other} after {months} months only, and it is used "
        "for {life}."
    ),
    "rent-even-never-months": N_("At this use, {one} never pays for itself against {other}."),
    # notes
    "rent-from-offer-hour": N_(
        "The hourly price is {provider}'s of {as_of}: {money}. --hourly gives another."
    ),
    "rent-from-offer-month": N_(
        "The monthly price is {provider}'s of {as_of}: {money}. --monthly gives another."
    ),
    "rent-no-offer-hour": N_("No offer by the hour for {card} in {currency}. Give --hourly."),
    "rent-no-offer-month": N_("No offer by the month for {card} in {currency}. Give --monthly."),
    "rent-disk-from-provider": N_(
        "Disk prices are {provider}'s: {running} {currency} per GB and month running, {stopped} stopped ({source})."
    ),
    "rent-stopped-costs": N_("Stopped, its disk still costs {money} a month."),
    "rent-billed-stopped": N_(
        "{provider} bills the GPU while the machine is stopped: stopping saves nothing."
    ),
    "rent-ask-any": N_(
        "Ask before renting: is the GPU free while the machine is stopped, what does its disk cost then, is the GPU "
        "still there when you come back, and is traffic billed?"
    ),
    "provider-ask-stop": N_("Ask {provider}: can a machine be stopped and its disk kept?"),
    "provider-ask-gpu": N_("Ask {provider}: is the GPU billed while the machine is stopped?"),
    "provider-ask-disk": N_("Ask {provider}: is the disk billed while the machine is stopped?"),
    "provider-ask-price": N_(
        "Ask {provider}: what does a GB of disk cost a month while it is stopped?"
    ),
    "provider-ask-egress": N_("Ask {provider}: is traffic out of the machine billed?"),
    "unknown-provider": N_(
        "{asked}: no such provider in the table. {suggestion}Leave --provider out, and ask what happens when a "
        "machine is stopped."
    ),
    "rent-sessions-assumed": N_(
        "Sessions of {hours} h were assumed, as few as 8 h a day allow; --sessions-per-week gives their number."
    ),
    "rent-library-whole": N_(
        "The whole library is downloaded each time; --library may be only what the workflow needs."
    ),
    "rent-vat": N_(
        "VAT of {vat} % is added to rental and API prices; the own card and energy count as paid."
    ),
    "rent-whole-months": N_("A month that has begun is paid whole."),
    "rent-longer": N_(
        "The outputs take {made} hours a month, longer than {stated} hours a week: the longer counts."
    ),
    "rent-uncounted-disk_running": N_(
        "The disk of a running machine is not counted: give --library and --disk."
    ),
    "rent-uncounted-disk_stopped": N_(
        "The disk of a stopped machine is not counted: give --library and --disk."
    ),
    "rent-uncounted-energy": N_(
        "Energy is not counted: give --own-power, --energy-price and the use."
    ),
    # input
    "rent-bad-field": N_("{field}: found {asked}. {why}. Fields: {allowed}"),
    "rent-bad-figure": N_(
        "{flag} {asked}: it must be above zero and at most {most}. Check the unit."
    ),
    "rent-bad-number": N_("{flag} {asked}: not a number. Give it as in {example}"),
    "rent-bad-unit": N_(
        "{flag} {asked}: not a number above zero with a unit. Give it as in {example}"
    ),
    "rent-bad-currency": N_("{flag} {asked}: the currency is not known. Give one of {allowed}"),
    "rent-two-currencies": N_(
        "{one} and {other}: prices in two currencies. Nothing is converted; give all in one."
    ),
    "rent-swapped": N_(
        "--monthly {monthly} is not above one hour's price, --hourly {hourly}. Were they swapped?"
    ),
    "rent-no-price": N_(
        "No price was given. Give --monthly, --hourly, --api-price or --own-price, or --card for the shipped offers."
    ),
    "rent-too-much": N_(
        "These outputs take {hours} hours a month and one machine has {most}. Ask for one machine's share."
    ),
    "rent-bad-chart": N_("--chart {asked}: give a name that ends in .png, .svg or .html"),
    "rent-chart-exists": N_("{file} exists. Add --force to write over it, or name another."),
    "rent-chart-extra": N_(
        "A chart needs {package}, which is not installed. Install it: pip install 'cardfit[web]'"
    ),
    # the page
    "rent-col-way": N_("way"),
    "rent-col-month": N_("a month"),
    "rent-col-term": N_("over {months} mo"),
    "rent-col-output": N_("an output"),
    "rent-col-lost": N_("hours lost"),
    "rent-col-made-of": N_("made of"),
    "rent-why": N_("Why"),
    "rent-break-even": N_("Break-even"),
    "rent-daily": N_("A day"),
    "rent-use": N_(
        "{hours} hours a month that the machine exists · {outputs} outputs · {sessions} sessions"
    ),
    "rent-upfront": N_("{money} at once"),
    "rent-small": N_("{amount} {currency}"),
    "rent-not-known": N_("not known"),
    "rent-line-machine": N_("machine {money}"),
    "rent-line-boot": N_("starting {money}"),
    "rent-line-download": N_("downloading {money}"),
    "rent-line-disk_running": N_("disk running {money}"),
    "rent-line-disk_stopped": N_("disk stopped {money}"),
    "rent-line-energy": N_("energy {money}"),
    "rent-line-api": N_("API {money}"),
    "rent-line-wear": N_("card {money}"),
    "rent-axis-hours": N_("hours a month that the machine is used"),
    "rent-axis-cost": N_("{currency} a month"),
    "rent-axis-way": N_("way"),
    # flags
    "help-rent-currency": N_("currency of every price, as in EUR; nothing is converted"),
    "help-rent-card": N_("take prices that are not given from the offers for this card"),
    "help-rent-provider": N_("what this provider does with a stopped machine"),
    "help-rent-monthly": N_("price of a month"),
    "help-rent-hourly": N_("price of an hour"),
    "help-rent-disk_per_gb_month": N_("price of a GB of disk for a month"),
    "help-rent-disk_stopped_per_gb_month": N_("the same while the machine is stopped; as --disk"),
    "help-rent-down_bytes_per_s": N_("download rate, as in 500Mbit"),
    "help-rent-library_bytes": N_("size of models and files on the disk, as in 400GB"),
    "help-rent-boot_s": N_("seconds until a started machine can be used"),
    "help-rent-hours_per_week": N_("hours a week that the machine must exist"),
    "help-rent-sessions_per_week": N_("how often a week it is started"),
    "help-rent-outputs_per_month": N_("accepted outputs a month, as in 40/month"),
    "help-rent-seconds": N_("seconds for one output"),
    "help-rent-keep_rate": N_("share of outputs that are accepted, as in 0.8"),
    "help-rent-term_months": N_("how long, as in 3mo, 2w or 1y"),
    "help-rent-vat_percent": N_("VAT in percent, added to rental and API prices"),
    "help-rent-api_price": N_("an API's price for one output"),
    "help-rent-own_price": N_("price of a card of your own"),
    "help-rent-own_power_w": N_("its power, as in 350W"),
    "help-rent-own_life_months": N_("how long it will be used, as in 3y"),
    "help-rent-energy_price_per_kwh": N_("price of a kWh"),
    "help-rent-idle_hours": N_("hours that it stands idle meanwhile"),
    "help-rent-stopped_hours": N_("hours that it stays stopped with its disk kept"),
    "help-rent-output_bytes": N_("size of an output's file that leaves the machine, as in 30MB"),
    "help-rent-egress_per_gb": N_("price of a GB of traffic out of the machine"),
    "help-rent-power_w": N_(
        "power while it generates, as in 350W; the board's limit when left out"
    ),
    "help-rent-private": N_("the data must not leave"),
    "help-cards-model": N_("say for each card what limits this model's denoising"),
    "help-rent-chart": N_("write a chart: a name ending in .png, .svg or .html"),
}
