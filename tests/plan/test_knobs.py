"""Which settings are tried, in which order, and what each costs."""

from __future__ import annotations

from types import SimpleNamespace

from cardfit.plan.knobs import candidates, closed, knobs_of, price_of, settings_text, trace_key
from cardfit.request import Settings
from cardfit.trace.cache import shaping


def test_open_settings_start_with_nothing_turned_and_end_with_the_lossiest(
    fakes: SimpleNamespace,
) -> None:
    found = candidates(Settings(), fakes.knobs())
    assert found[0].settings == closed(Settings())
    assert found[0].price == ()
    assert found[-1].settings.quantization["transformer"] == "bnb-nf4"
    # none: 5 offloads, fp8 layerwise: 4, bnb: 2 schemes x 2 offloads, all with and without tiles
    assert len(found) == (5 + 4 + 4) * 2


def test_slower_comes_before_slightly_lossy_and_that_before_lossy(fakes: SimpleNamespace) -> None:
    found = [each.settings for each in candidates(Settings(), fakes.knobs())]
    slowest = found.index(closed(Settings(offload="sequential")))
    tiled = found.index(closed(Settings(vae_tiling=True)))
    fp8 = next(i for i, each in enumerate(found) if "fp8-layerwise" in each.quantization.values())
    assert slowest < tiled < fp8


def test_what_was_given_stays(fakes: SimpleNamespace) -> None:
    given = Settings(
        offload="group-leaf", vae_tiling=False, quantization={"transformer": "bnb-nf4"}
    )
    (only,) = candidates(given, fakes.knobs())
    assert only.settings.model_copy(update={"vae_slicing": None}) == given
    assert only.price == ("slower", "lossy")


def test_a_tile_size_asks_for_tiling(fakes: SimpleNamespace) -> None:
    assert {
        each.settings.vae_tiling for each in candidates(Settings(vae_tile=192), fakes.knobs())
    } == {True}


def test_slicing_is_tried_for_batches_only_and_costs_nothing(fakes: SimpleNamespace) -> None:
    single = candidates(Settings(), fakes.knobs())
    assert not any(each.settings.vae_slicing for each in single)
    batch = candidates(Settings(), fakes.knobs(batch=4))
    assert batch[1].settings == closed(Settings(vae_slicing=True))
    assert batch[1].price == ()


def test_no_tiles_for_a_picture_within_one(fakes: SimpleNamespace) -> None:
    small = fakes.knobs(width=256, height=256)
    assert small.tile is None
    assert not any(each.settings.vae_tiling for each in candidates(Settings(), small))


def test_chunks_are_tried_where_the_pipeline_takes_them(fakes: SimpleNamespace) -> None:
    knobs = knobs_of(fakes.trace(num_frames=14), tile=None, slicing=False, chunked=True)
    sizes = [
        each.settings.decode_chunk_size for each in candidates(Settings(offload="none"), knobs)
    ]
    assert sizes[:3] == [None, 8, 2]


def test_only_large_text_encoders_are_quantized(fakes: SimpleNamespace) -> None:
    assert fakes.knobs().quantized("bnb-int8") == {
        "transformer": "bnb-int8",
        "text_encoder": "bnb-int8",
    }
    assert fakes.knobs().quantized("fp8-layerwise") == {"transformer": "fp8-layerwise"}


def test_offload_and_quantization_never_make_another_trace() -> None:
    plain = trace_key(Settings())
    assert trace_key(Settings(offload="model", quantization={"transformer": "bnb-nf4"})) == plain
    assert trace_key(Settings(vae_tiling=True)) != plain


def test_prices_and_words(fakes: SimpleNamespace) -> None:
    settings = Settings(
        offload="group-leaf",
        vae_tiling=True,
        quantization={"transformer": "bnb-int8", "text_encoder": "bnb-int8"},
    )
    assert price_of(settings, fakes.knobs()) == ("slower", "lossy")
    assert settings_text(settings, fakes.knobs()) == (
        "bnb-int8 (transformer, text_encoder), group offload, VAE tiling 256"
    )
    assert settings_text(closed(Settings()), fakes.knobs()) == "nothing to change"
    assert settings_text(Settings(dtype={"*": "float16"}), fakes.knobs()) == "float16"


def test_a_vae_that_only_decodes_in_tiles_pays_nothing_for_them(fakes: SimpleNamespace) -> None:
    knobs = knobs_of(fakes.trace(), tile=320, slicing=False, chunked=False, always_tiled=True)
    found = candidates(Settings(), knobs)
    assert {each.settings.vae_tiling for each in found} == {True}
    assert found[0].price == ()


def test_knobs_of_an_offload_narrow_what_is_tried(fakes: SimpleNamespace) -> None:
    def tried(**given: object) -> set[str | None]:
        return {each.settings.offload for each in candidates(Settings(**given), fakes.knobs())}

    assert tried(blocks_to_swap=20) == {"none", "model"}
    assert tried(num_blocks_per_group=2) == {"group-block"}
    assert tried(offload_to_disk=True) == tried(use_stream=False) == {"group-block", "group-leaf"}
    assert tried(offload="model", use_stream=False) == {"model"}
    assert len(tried()) == 5


def test_the_details_of_an_offload_are_said(fakes: SimpleNamespace) -> None:
    group = Settings(offload="group-block", num_blocks_per_group=4, offload_to_disk=True)
    assert settings_text(group, fakes.knobs()) == (
        "group offload by block, 4 blocks a group, weights on disk"
    )
    swap = Settings(offload="none", blocks_to_swap=20)
    assert settings_text(swap, fakes.knobs()) == "20 blocks swapped"
    assert price_of(swap, fakes.knobs()) == ("slower",)


def test_where_weights_wait_shapes_no_trace():
    given = Settings(
        offload="group-block", quantization={"unet": "bnb-nf4"}, compile=True, use_stream=True,
        num_blocks_per_group=2, low_cpu_mem_usage=True, offload_to_disk=True, blocks_to_swap=4,
        alloc_conf="expandable_segments:True",
    )  # fmt: skip
    assert trace_key(given) == trace_key(Settings())
    # every field is either a part of the cached trace's name or left out of the key
    shaped = set(shaping(given))
    kept = {n for n in Settings.model_fields if n not in shaped}
    assert kept == {
        "offload", "quantization", "compile", "use_stream", "num_blocks_per_group", "low_cpu_mem_usage",
        "offload_to_disk", "blocks_to_swap", "alloc_conf",
    }  # fmt: skip
    for turned in (
        Settings(prompt_embeds=True),
        Settings(forward_chunking=4),
        Settings(attention="math"),
    ):
        assert trace_key(turned) != trace_key(Settings())
