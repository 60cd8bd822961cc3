"""Small things every view says the same way: sizes, settings, verdicts, money, names.

In: values of the contracts. Out: short texts in the reader's language.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

from cardfit.messages import TEXTS, number, say
from cardfit.plan.again import command as command
from cardfit.plan.answer import Answer, CardRow, Money, OfferRow, Pick, Price, Verdict
from cardfit.plan.knobs import offload_details
from cardfit.plan.offers import money_text as money_text
from cardfit.plan.target import short_name
from cardfit.report.grid import Cell
from cardfit.report.style import Style
from cardfit.request import Dtype, ExactRequest, Settings
from cardfit.units import human_seconds

DTYPE_WORDS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_VERDICTS: dict[Verdict, tuple[str, str]] = {
    "fits": ("fits", "verdict-fits"),
    "tight": ("tight", "verdict-tight"),
    "spills": ("price", "verdict-spills"),
    "pages": ("price", "verdict-pages"),
    "does_not_fit": ("no", "verdict-does-not-fit"),
    "unknown": ("unknown", "verdict-unknown"),
}
# the worst first: a table shows one
_PRICES: dict[Price, str] = {
    "lossy": "price-lossy",
    "more_ram": "price-more-ram",
    "slower": "price-slower",
}
_OFFLOADS = {
    "model": "set-offload-model",
    "group-block": "set-offload-group-block",
    "group-leaf": "set-offload-group-leaf",
    "sequential": "set-offload-sequential",
}


card_name = short_name


def shape_name(verdict: Verdict, prices: Sequence[Price]) -> str:
    """The name of the sign for a verdict, by the keys of `style.SHAPES`: a half disc where it fits at a price."""
    return "price" if verdict == "fits" and prices else _VERDICTS[verdict][0]


def shape(verdict: Verdict, prices: Sequence[Price], style: Style) -> str:
    """The sign for a verdict."""
    return style.shape(shape_name(verdict, prices))


def verdict_words(row: CardRow) -> str:
    """The verdict in words, with its worst price: ``fits``, ``fits, lossy``."""
    worst = [say(_PRICES[price]) for price in _PRICES if price in row.price_of_it][:1]
    return ", ".join([say(_VERDICTS[row.verdict][1]), *worst])


def verdict(row: CardRow, style: Style) -> Cell:
    """The verdict as shape and words: ``● fits``, ``◐ fits, lossy``."""
    return Cell(
        f"{shape(row.verdict, row.price_of_it, style)} {verdict_words(row)}", row.grade or ""
    )


def short_settings(row: CardRow) -> str:
    """The settings of a row for a table: without the components that a scheme is for.

    The picks and the JSON name them. Beside other knobs an offload has a shorter name.
    """
    text = re.sub(r" \([^()]*\)", "", row.settings_text)
    if ", " in text:
        for kind in ("group-block", "sequential"):
            text = text.replace(say(f"plan-offload-{kind}"), say(f"short-offload-{kind}"))
    return text or say("set-nothing")


def short_why(row: CardRow) -> str:
    """The deciding fact of a row that holds nothing, in a few words."""
    code = f"short-{row.why.code}"
    return say(code, row.why.args) if code in TEXTS else row.why.text


def best(answer: Answer) -> Pick | None:
    """The settings to go on with: the cheapest pick, else the safest, else the first card that holds it."""
    picks = answer.recommended
    if (pick := picks.cheapest or picks.safest) is not None:
        return pick
    rows = [row for row in answer.cards if row.verdict in ("fits", "tight")]
    for row in rows:
        if row.settings is not None:
            return Pick(card=row.card, settings=row.settings, why=row.why)
    return None


def dtypes_of(settings: Settings, recommended: Mapping[str, Dtype]) -> dict[str, Dtype]:
    """The dtype of every component: its own, else the one for all, else the model's recommended one."""
    common = settings.dtype.get("*")
    return {name: settings.dtype.get(name) or common or own for name, own in recommended.items()}


def dtypes(settings: Settings, recommended: Mapping[str, Dtype] | None = None) -> str:
    """The dtypes as a person says them: the common one first, then the components that differ.

    >>> dtypes(Settings(), {"transformer": "bfloat16", "text_encoder": "bfloat16", "vae": "float32"})
    'bf16, vae fp32'
    >>> dtypes(Settings(dtype={"*": "float16"}))
    'fp16'
    """
    found = dtypes_of(settings, recommended) if recommended else settings.dtype
    if not found:
        return say("recommended-dtypes")
    common = found.get("*") or Counter(found.values()).most_common(1)[0][0]
    others = [
        f"{name} {DTYPE_WORDS[dtype]}"
        for name, dtype in found.items()
        if dtype != common and name != "*"
    ]
    return ", ".join([DTYPE_WORDS[common], *others])


def settings_words(settings: Settings) -> str:
    """The knobs that are turned, as diffusers calls them."""
    words = [
        say("set-quantized", {"component": component, "scheme": scheme})
        for component, scheme in settings.quantization.items()
        if scheme != "none"
    ]
    if settings.offload in _OFFLOADS:
        words.append(say(_OFFLOADS[settings.offload]))
    words += offload_details(settings)
    if settings.vae_tiling and settings.vae_tile is not None:
        words.append(say("set-tiling-size", {"tile": settings.vae_tile}))
    elif settings.vae_tiling:
        words.append(say("set-tiling"))
    if settings.vae_slicing:
        words.append(say("set-slicing"))
    if settings.decode_chunk_size is not None:
        words.append(say("set-chunk", {"frames": settings.decode_chunk_size}))
    if settings.attention != "sdpa":
        words.append(say("set-attention", {"name": settings.attention}))
    if settings.prompt_embeds:
        words.append(say("plan-embeds"))
    if settings.forward_chunking is not None:
        words.append(say("plan-forward-chunks", {"tokens": settings.forward_chunking}))
    if settings.fuse_qkv:
        words.append(say("plan-fuse-qkv"))
    return ", ".join(words) or say("set-nothing")


def what(request: ExactRequest) -> list[str]:
    """Size, frames, steps and batch: what is made."""
    parts = [f"{request.width}x{request.height}"]
    if request.fps and request.num_frames > 1:
        seconds = human_seconds(request.num_frames / request.fps)
        args = {"frames": request.num_frames, "seconds": seconds, "fps": number(f"{request.fps:g}")}
        parts.append(say("frames-at", args))
    elif request.num_frames > 1:
        parts.append(say("frames", {"frames": request.num_frames}))
    parts.append(say("steps", {"steps": request.num_inference_steps}))
    if request.batch > 1:
        parts.append(say("batch", {"batch": request.batch}))
    return parts


def money(value: Money) -> str:
    """An amount with its currency.

    >>> money(Money(amount=0.4, currency="USD")), money(Money(amount=286, currency="EUR"))
    ('$0.40', '286 EUR')
    """
    return money_text(value.amount, value.currency)


def price(offer: OfferRow | None, between: str = "  ") -> str:
    """The price of an offer, then its age."""
    if offer is None:
        return say("no-offer")
    return f"{price_of(offer)}{between}{say('age-days', {'days': offer.age_days})}"


def price_of(offer: OfferRow) -> str:
    """The price of an offer for its period: ``$0.40/h``."""
    code = "price-hour" if offer.period == "hour" else "price-month"
    text = say(code, {"money": money(offer.price)})
    return say("price-spot", {"price": text}) if offer.spot else text


def command_lines(words: list[str], width: int) -> list[str]:
    """A command as it can be pasted into a shell, broken with backslashes where it is too wide."""
    lines, line = [], ""
    for word in map(shlex.quote, words):
        if line and len(line) + len(word) + 3 > width:
            lines.append(line + " \\")
            line = "  " + word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]
