"""Sentences of the room `offers`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "offer-old": N_(
        "the price of {provider} for {card} is of {as_of}, {days} days ago: look before you rent"
    ),
    "offer-node": N_(
        "{provider} rents {card} in machines of {gpus} only: {price} {currency} for all of them"
    ),
    "offer-currencies": N_(
        "offers for {card} in {others} were left aside: prices in {currency} are compared, "
        "nothing is converted"
    ),
    # update
    "offers-need-gpuhunt": N_(
        "Collecting prices needs {package}, which is not installed. Install it: pip install 'cardfit[prices]', or give "
        "a table: cardfit offers update --from FILE"
    ),
    "offers-gpuhunt-failed": N_(
        "gpuhunt could not collect prices: {why}. What was kept before stays. Try again, or give a table: cardfit "
        "offers update --from FILE"
    ),
    "offers-gpuhunt-source": N_("gpuhunt, query of {day}"),
    "offers-none-found": N_(
        "{source} holds no offer for a card of the catalog. What was kept before stays."
    ),
    "offers-not-written": N_(
        "{file} cannot be written: {why}. Name another folder in CARDFIT_CACHE."
    ),
    "offers-update-needs": N_(
        "offers update needs a source: --from gpuhunt, or --from FILE for a table of offers."
    ),
    "offers-updated": N_("{offers} offers for {cards} cards kept in {file}"),
    "offers-left-out-no_gpu": N_("{count} left out: no GPU"),
    "offers-left-out-card": N_("{count} left out: a card that the catalog does not hold"),
    "offers-left-out-price": N_("{count} left out: no price above zero"),
    "help-offers-action": N_("update: fetch newer prices and keep them"),
    "help-offers-from": N_("with update: gpuhunt, or the path of a CSV file"),
}
