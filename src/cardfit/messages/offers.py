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
}
