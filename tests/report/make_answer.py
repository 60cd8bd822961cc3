"""A hand-made answer whose parts agree: weights + working = allocated <= reserved, verdicts from peak and usable."""

from __future__ import annotations

from cardfit.plan.answer import (
    Answer,
    CardRow,
    ModelRow,
    Money,
    OfferRow,
    Peak,
    Pick,
    Recommended,
    Said,
    StageRow,
)
from cardfit.request import ExactRequest, Settings

GIB = 1024**3
CONTEXT = 500 * 1024**2


def size(gib: float) -> int:
    return round(gib * GIB)


def stage(name: str, component: str, weights: float, working: float, allocator: float) -> StageRow:
    allocated = size(weights) + size(working)
    reserved = allocated + size(allocator)
    return StageRow(
        name=name,
        component=component,
        calls=1,
        weights_bytes=size(weights),
        activation_bytes=size(working),
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        low_bytes=round(reserved * 0.98),
        high_bytes=round(reserved * 1.03),
        basis="traced",
        site="blocks.12.ffn.net.0.proj aten.linear",
    )


def offer(price: float, days: int = 6, period: str = "hour", spot: bool = False) -> OfferRow:
    return OfferRow(
        provider="somewhere",
        price=Money(amount=price, currency="USD"),
        period=period,
        spot=spot,
        as_of="2026-11-25",
        age_days=days,
        ram_bytes=size(64),
        source="a page",
    )


def row(
    card: str,
    name: str,
    memory: float,
    usable: float,
    peak: float | None,
    *,
    price_of_it: tuple[str, ...] = (),
    settings: Settings | None = None,
    text: str = "",
    price: float | None = None,
    stage_name: str = "denoise",
) -> CardRow:
    """The verdict follows from peak against usable: within 3 % above the peak it is tight."""
    if peak is None:
        verdict, grade, why = "unknown", None, Said.of("plan-no-facts")
    elif peak * 1.03 <= usable:
        verdict, grade, why = (
            "fits",
            "amber" if price_of_it else "green",
            Said.of("plan-fits-would"),
        )
    elif peak <= usable:
        verdict, grade, why = "tight", "amber", Said.of("plan-tight-would")
    else:
        verdict, grade = "does_not_fit", "red"
        over = f"{peak - usable:.1f} GiB"
        why = Said.of(
            "plan-over",
            stage=stage_name,
            peak=f"{peak:.1f} GiB",
            over=over,
            usable=f"{usable:.1f} GiB",
        )
    known = peak is not None
    return CardRow(
        card=card,
        name=name,
        memory_bytes=size(memory),
        verdict=verdict,
        grade=grade,
        price_of_it=price_of_it if verdict in ("fits", "tight") else (),
        settings=settings if verdict in ("fits", "tight") else None,
        settings_text=text,
        limiting_stage=stage_name if known else None,
        peak_reserved_bytes=size(peak) if peak is not None else None,
        device_bytes=size(peak) + CONTEXT if peak is not None else None,
        usable_bytes=size(usable) if known else None,
        headroom_bytes=size(usable) - size(peak) if peak is not None else None,
        host_bytes=size(38) if known else None,
        disk_bytes=size(75),
        seconds=None,
        cost_per_output=None,
        offer=None if price is None else offer(price),
        why=why,
        near_miss=None,
    )


def cards() -> tuple[CardRow, ...]:
    model = Settings(offload="model", vae_tiling=False, vae_slicing=False)
    leaf = Settings(offload="group-leaf", vae_tiling=False, vae_slicing=False)
    tiled = Settings(offload="group-leaf", vae_tiling=True, vae_tile=256, vae_slicing=False)
    slow = ("slower",)
    both = ("slower", "lossy")
    streamed = "group offload by leaf, streamed"
    known = (
        row(
            "rtx-4090",
            "NVIDIA GeForce RTX 4090",
            24,
            23.0,
            20.5,
            price_of_it=slow,
            settings=leaf,
            text=streamed,
            price=0.4,
        ),
        row(
            "rtx-a6000",
            "NVIDIA RTX A6000",
            48,
            46.9,
            35.4,
            price_of_it=slow,
            settings=model,
            text="model offload",
            price=0.5,
        ),
        row(
            "h100-sxm",
            "NVIDIA H100 SXM 80GB",
            80,
            78.5,
            62.0,
            settings=Settings(offload="none", vae_tiling=False, vae_slicing=False),
            text="nothing to change",
            price=2.1,
        ),
        row(
            "l4",
            "NVIDIA L4",
            24,
            21.0,
            20.5,
            price_of_it=slow,
            settings=leaf,
            text=streamed,
            price=0.39,
            stage_name="decode",
        ),
        row(
            "rtx-4080",
            "NVIDIA GeForce RTX 4080",
            16,
            15.2,
            12.0,
            price_of_it=both,
            settings=tiled,
            text=f"{streamed}, VAE tiling 256",
            price=0.25,
        ),
        row("t4", "NVIDIA T4", 16, 14.2, 20.5, price=0.2, stage_name="decode"),
        row("mi300x", "AMD Instinct MI300X", 192, 190, None, price=2.4),
    )
    more = tuple(
        row(f"small-{at}", f"NVIDIA Small {at}", 8, 7.2, 12.0 + at, price=None, stage_name="decode")
        for at in range(8)
    )
    return known + more


def answer(rows: tuple[CardRow, ...] | None = None, **changes: object) -> Answer:
    stages = (
        stage("encode_prompt", "text_encoder", 57.8, 0.1, 0.1),
        stage("denoise", "transformer", 57.8, 8.0, 0.7),
        stage("decode", "vae", 57.8, 17.6, 2.4),
    )
    found = cards() if rows is None else rows
    by_id = {each.card: each for each in found}
    peak = max(stages, key=lambda each: each.reserved_bytes)

    def pick(card: str) -> Pick | None:
        if card not in by_id or by_id[card].settings is None:
            return None
        return Pick(
            card=card,
            settings=by_id[card].settings,
            why=Said.of("plan-safest", headroom="11.5 GiB"),
        )

    fields: dict[str, object] = {
        "versions": {"cardfit": "0.1.0", "diffusers": "0.42.1", "torch": "2.13.0"},
        "model": ModelRow(
            id="wan2.1-t2v-14b",
            title="Wan2.1 T2V 14B",
            license="Apache-2.0",
            verified=True,
            pipeline="WanPipeline",
        ),
        "request": ExactRequest(
            model="wan2.1-t2v-14b",
            task="text-to-video",
            width=1280,
            height=720,
            num_frames=81,
            fps=16,
            num_inference_steps=50,
            guidance_scale=5.0,
            prompt_tokens=512,
        ),
        "settings": Settings(),
        "stages": stages,
        "peak": Peak(
            allocated_bytes=peak.allocated_bytes,
            reserved_bytes=peak.reserved_bytes,
            device_bytes=peak.reserved_bytes + CONTEXT,
            stage=peak.name,
        ),
        "one_at_a_time": Peak(
            allocated_bytes=size(34.7),
            reserved_bytes=size(35.4),
            device_bytes=size(35.4) + CONTEXT,
            stage="denoise",
        ),
        "one_at_a_time_host_bytes": size(38),
        "rule_bytes": size(43.5),
        "denoiser_rule_bytes": size(30.6),
        "cards": found,
        "recommended": Recommended(
            cheapest=pick("rtx-4080"), fastest=None, safest=pick("rtx-a6000")
        ),
        "notes": (Said.of("plan-no-seconds"),),
    }
    return Answer(**(fields | changes))
