"""Flags are the fields of the models, no more and no less."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.cli import flags, typed
from cardfit.errors import BadRequest
from cardfit.request import DTYPES, Request, Settings


def test_every_field_has_a_flag_of_its_name():
    request = {field.name for field in dataclasses.fields(flags.RequestFlags)}
    settings = {field.name for field in dataclasses.fields(flags.SettingsFlags)}
    assert request == set(Request.model_fields) - {"model"}
    assert settings == set(Settings.model_fields)
    assert not request & settings


def test_every_flag_is_open_until_given():
    assert set(vars(flags.RequestFlags()).values()) == {None}
    assert set(vars(flags.SettingsFlags()).values()) == {None}


def test_every_flag_says_what_it_is_for(capsys):
    from cardfit.cli.main import run

    run(["plan", "--help"])
    text = capsys.readouterr().out
    for model in (Request, Settings):
        for name in model.model_fields:
            if name != "model":
                assert flags.flag(name) in text


@given(st.sampled_from(sorted(flags.DTYPE_ALIASES)), st.sampled_from(["vae", "text_encoder_2"]))
def test_any_alias_is_a_dtype_for_all_or_for_one(word, component):
    assert flags.dtypes([word])["*"] in DTYPES
    found = flags.dtypes([word, f"{component}=fp32"])
    assert found[component] == "float32" and found["*"] == flags.DTYPE_ALIASES[word]


@given(st.text(max_size=12))
def test_other_words_are_refused_in_one_sentence(word):
    if word.rpartition("=")[2] in flags.DTYPE_ALIASES:
        return
    with pytest.raises(BadRequest) as caught:
        flags.dtypes([word])
    assert "bf16, fp16, fp32" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "size"), [("64GB", 64 * 1024**3), ("64 GiB", 64 * 1024**3), (None, None)]
)
def test_ram_counts_as_memory_is_sold(text, size):
    assert flags.ram_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0GB", "-4GB", "many", "64"])
def test_ram_that_is_no_size_is_refused(text):
    with pytest.raises(BadRequest):
        flags.ram_bytes(text)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0", "x/month", "40/week"])
def test_outputs_that_are_no_number_are_refused(text):
    with pytest.raises(BadRequest):
        flags.outputs_per_month(text)


def test_the_typed_command_loses_only_what_shows_it():
    words = ["plan", "svd", "--save", "a.yaml", "--width", "512", "--json", "--as=line", "--check"]
    assert typed.again(words) == ["cardfit", "plan", "svd", "--width", "512"]
    assert typed.again([]) is None


def test_disks_are_sold_in_powers_of_ten() -> None:
    assert flags.disk_bytes("200GB") == 200 * 10**9
    assert flags.disk_bytes(None) is None
    for bad in ("200", "0GB", "much"):
        with pytest.raises(BadRequest, match="--disk"):
            flags.disk_bytes(bad)


def test_an_adapter_is_a_rank_with_what_it_is():
    found = flags.loras(["32", "16:fused", "8:float32", "4:bf16:fused"])
    given = Request(model="m", loras=found).loras
    assert [(each.rank, each.fused, each.dtype) for each in given] == [
        (32, False, None),
        (16, True, None),
        (8, False, "float32"),
        (4, True, "bfloat16"),
    ]


@pytest.mark.parametrize("word", ["", "many", "-1", "32:", "32:half", "32:fp16:bf16", "٣٢", "1e3"])
def test_an_adapter_that_is_no_rank_is_refused(word):
    with pytest.raises(BadRequest, match="--lora 32:fused"):
        flags.loras([word])


def test_an_adapter_is_a_file_wherever_it_lies():
    found = flags.loras(["D:\\loras\\a.safetensors:fused", "./b.safetensors"])
    assert found == [
        {"file": "D:\\loras\\a.safetensors", "fused": True},
        {"file": "./b.safetensors"},
    ]
    with pytest.raises(BadRequest, match="style.safetensors"):
        flags.loras(["a.safetensors.bak"])


@pytest.mark.parametrize(
    "word", ["", "0", "9", "num_layers=x", "union:2", "num_layers=1:num_layers=2", "width=3", "١"]
)
def test_a_controlnet_that_is_none_is_refused(word):
    with pytest.raises(BadRequest, match="--controlnet union-pro"):
        flags.controlnets([word])


def test_add_ons_are_flags_of_the_request():
    given = flags.RequestFlags(
        controlnets=["1"], ip_adapters=["ip-adapter"], t2i_adapters=2, components=["safety_checker"],
        reference_images=3,
    )  # fmt: skip
    request, _ = flags.asked("m", given, flags.SettingsFlags())
    assert (len(request.controlnets), request.ip_adapters) == (1, ("ip-adapter",))
    assert (request.t2i_adapters, request.reference_images) == (2, 3)
    assert request.components == ("safety_checker",)
