"""What a person has in hand becomes a model: folders, files and entries of one's own, and what is refused of them."""

from __future__ import annotations

import json
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardfit import api, verbs
from cardfit.errors import BadFile, BadRequest, CardfitError, DryRunFailed, UnknownModel
from cardfit.library import load
from cardfit.library.models import Model
from cardfit.library.rules import resolve
from cardfit.library.sources import indoors
from cardfit.request import Request, Settings
from cardfit.units import gib_text

SD = load("stable-diffusion-1.5")
SMALL = {"width": 64, "height": 64, "num_inference_steps": 2}


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def configs(folder: Path, model: Model, **index: Any) -> Path:
    """A diffusers folder of ``model`` without weights, as save_pretrained lays it out."""
    listed: dict[str, Any] = {"_class_name": model.pipeline, "_diffusers_version": "0.42.1"}
    for name, part in model.components.items():
        if part.counted:
            library, _, kind = part.class_path.rpartition(".")
            listed[name] = [library, kind]
            about = {"_class_name": kind} if library == "diffusers" else {"architectures": [kind]}
            write(folder / name / "config.json", {**part.config, **about})
    kind = model.scheduler.class_path.rpartition(".")[2]
    listed |= {"scheduler": ["diffusers", kind], "tokenizer": ["transformers", "CLIPTokenizer"]}
    write(folder / "scheduler" / "scheduler_config.json", model.scheduler.config)
    write(folder / "model_index.json", {**listed, **index})
    return folder


def weights(path: Path, **tensors: tuple[str, int]) -> Path:
    """A safetensors file of tensors by name, dtype and elements; the weights are a hole."""
    item, found, at = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1}, {}, 0
    for name, (dtype, count) in tensors.items():
        end = at + item[dtype] * count
        found[name] = {"dtype": dtype, "shape": [count], "data_offsets": [at, end]}
        at = end
    text = json.dumps(found).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + at)
    return path


def codes(model: Any) -> list[str]:
    return [note.code for note in model.said]


# --- folders


def test_a_folder_with_the_librarys_configs_is_the_librarys_model(tmp_path: Path) -> None:
    folder = configs(tmp_path / "mine", load("flux.1-dev"))
    found: Any = load(str(folder))
    assert (found.id, found.title, found.kind) == (str(folder), "mine", "folder")
    assert found.as_traced.id == "flux.1-dev"
    assert codes(found) == ["source-is-entry", "source-no-weights"]
    trace = api.trace(Request(model=str(folder), num_inference_steps=4))
    assert trace.basis == "atlas"  # no torch is needed for it
    assert trace.request.model == str(folder)


def test_a_folders_own_numbers_are_what_is_traced(folder: Path, tiny: Any) -> None:
    found: Any = load(str(folder))
    assert codes(found) == ["source-rules"]
    shrunk = tiny.shrunk("stable-diffusion-1.5")
    assert found.components["unet"].config["block_out_channels"] == [8, 8, 16, 16]
    assert found.components["unet"].published_dtype == "float32"
    assert found.verified and not found.unverified_parts  # files and configs agree
    trace = api.trace(Request(model=str(folder), **SMALL))
    held = {part.name: part.weights_bytes for part in trace.components}
    assert held.keys() == {"text_encoder", "unet", "vae"}
    for name, size in held.items():  # in half precision; position ids are whole numbers
        assert 0 <= size - 2 * found.components[name].params <= 8 * 77
    assert found.defaults == shrunk.defaults and found.rules == shrunk.rules
    first = sum(path.stat().st_size for path in folder.glob("unet/*.safetensors"))
    assert 0 < first - found.stored_bytes("unet") < 100_000  # the header is no weight


def test_the_trace_is_kept_by_content(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Request(model=str(folder), **SMALL)
    once = api.trace(asked)
    monkeypatch.setattr("cardfit.trace.dryrun.dry_run", None)  # nothing is run again
    assert api.trace(asked).timeline == once.timeline


def test_every_verb_takes_a_folder(folder: Path, tmp_path: Path) -> None:
    answer = api.plan(Request(model=str(folder), **SMALL), cards=["rtx-4090"])
    assert answer.model.id == str(folder) and answer.model.title == "sd"
    assert answer.cards[0].verdict == "fits"
    assert "source-rules" in [note.code for note in answer.notes]
    found = verbs.largest(Request(model=str(folder), **SMALL), vary="batch", card="l4", most=2)
    assert found.fits is not None


def test_files_that_hold_another_number_of_weights_are_said(tmp_path: Path) -> None:
    folder = configs(tmp_path / "odd", SD)
    weights(folder / "vae" / "diffusion_pytorch_model.safetensors", w=("F16", 12_345_678))
    found: Any = load(str(folder))
    assert "source-count-differs" in codes(found)
    assert found.components["vae"].published_dtype == "float16"
    assert "vae" in found.unverified_parts


def test_parts_stored_quantized_are_counted_so(tmp_path: Path) -> None:
    folder = configs(tmp_path / "nf4", load("flux.1-dev"))
    path = folder / "transformer" / "config.json"
    stated = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    write(path, {**json.loads(path.read_text()), "quantization_config": stated})
    answer = api.plan(str(folder), cards=["rtx-4090"])
    assert answer.request.model == str(folder)
    assert answer.settings.quantization == {"transformer": "bnb-nf4"}
    given = api.plan(
        str(folder), Settings(quantization={"transformer": "none"}), cards=["rtx-4090"]
    )
    assert given.peak.reserved_bytes > 1.5 * answer.peak.reserved_bytes


def test_a_class_that_no_entry_has_follows_the_signature_of_its_call(
    tmp_path: Path, tiny: Any
) -> None:
    small = tiny.shrunk("stable-diffusion-1.5")
    folder = configs(
        tmp_path / "pano", small, _class_name="StableDiffusionPanoramaPipeline",
        scheduler=["diffusers", "DDIMScheduler"],
    )  # fmt: skip
    found: Any = load(str(folder))
    assert codes(found)[0] == "source-general"
    assert (found.defaults.width, found.defaults.height) == (2048, 512)  # of its __call__
    assert found.tasks == ("text-to-image",)
    trace = api.trace(Request(model=str(folder), **SMALL))
    assert {stage for stage, _ in trace.stages} >= {"encode_prompt", "denoise", "decode"}


# --- single files


@pytest.mark.parametrize(
    ("name", "entry", "stored", "scheme"),
    [
        ("my-own-flux.safetensors", "flux.1-dev", "F8_E4M3", "fp8-layerwise"),
        ("anything.safetensors", "sdxl-base", "F16", None),  # the oldest of those alike
        ("sd_xl_turbo_1.0_fp16.safetensors", "sdxl-turbo", "F16", None),  # as its name says
    ],
)
def test_a_file_is_the_model_that_has_as_many_weights(
    tmp_path: Path, name: str, entry: str, stored: str, scheme: str | None
) -> None:
    model = load(entry)
    part = next(each for each in ("transformer", "unet") if each in model.components)
    count = model.components[part].params
    path = weights(tmp_path / name, **{"model.diffusion_model.w": (stored, count)})
    found: Any = load(str(path))
    assert found.as_traced.id == entry and found.kind == "file"
    assert found.schemes == ({} if scheme is None else {part: scheme})
    assert found.stored_bytes(part) == count * (1 if scheme else 2)
    assert "source-file" in codes(found) and entry in found.said[0].text


def test_a_gguf_file_is_planned_as_it_is_stored(tmp_path: Path) -> None:
    part = load("flux.1-dev").components["transformer"]
    path = tmp_path / "some-flux-Q8_0.gguf"
    begin = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Qc", 1, b"w")
    begin += struct.pack("<IQIQ", 1, part.params, 8, 0)
    size = part.params // 32 * 34
    with path.open("wb") as stream:
        stream.write(begin)
        stream.truncate(-(-len(begin) // 32) * 32 + size)
    found: Any = load(str(path))
    assert found.as_traced.id == "flux.1-dev" and found.stored_bytes("transformer") == size
    answer = api.plan(str(path), cards=["rtx-4090"])
    assert answer.settings.quantization == {"transformer": "gguf-q8_0"}


def test_a_checkpoint_is_told_apart_into_its_parts(tmp_path: Path) -> None:
    parts = load("sdxl-base").components
    path = weights(
        tmp_path / "merge.safetensors",
        **{
            "model.diffusion_model.w": ("F16", parts["unet"].params),
            "conditioner.embedders.0.w": ("F16", parts["text_encoder"].params),
            "conditioner.embedders.1.w": ("F16", parts["text_encoder_2"].params + 1),
            "first_stage_model.w": ("F32", parts["vae"].params),
        },
    )
    found: Any = load(str(path))
    assert {name: each.precision for name, each in found.stored.items()} == {
        "unet": "fp16", "text_encoder": "fp16", "text_encoder_2": "fp16", "vae": "fp32",
    }  # fmt: skip
    assert found.stored_bytes("vae") == 4 * parts["vae"].params
    assert "source-file-others" not in codes(found)


def test_a_plan_of_a_file_counts_what_is_stored(tmp_path: Path) -> None:
    count = load("flux.1-dev").components["transformer"].params
    path = weights(tmp_path / "f.safetensors", w=("F8_E4M3", count))
    answer = api.plan(str(path), cards=["rtx-4090"])
    assert answer.settings.quantization == {"transformer": "fp8-layerwise"}
    plain = api.plan("flux.1-dev", cards=["rtx-4090"])
    less = plain.peak.reserved_bytes - answer.peak.reserved_bytes
    assert 0.7 * count < less < count  # half of two bytes a weight; norms are not cast
    assert answer.cards[0].disk_bytes is not None and plain.cards[0].disk_bytes is not None
    assert plain.cards[0].disk_bytes - answer.cards[0].disk_bytes == count


# --- what is refused


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ({"_class_name": ["my_pipeline", "MyPipeline"]}, "names a pipeline of its own"),
        ({"_class_name": None}, "not a JSON object as it should be"),
        ({"_class_name": "../Evil"}, "not a JSON object as it should be"),
        ({"_class_name": "NoSuchPipeline"}, "has no pipeline class NoSuchPipeline"),
        ({"_class_name": "AutoencoderKL"}, "has no pipeline class AutoencoderKL"),
        ({"unet": ["my_code", "MyUNet"]}, "comes from my_code.*never runs"),
        ({"unet": ["diffusers", "os.system"]}, "not a JSON object as it should be"),
        ({"unet": ["diffusers", "NoSuchModel"]}, "NoSuchModel cannot be built"),
        ({"../unet": ["diffusers", "UNet2DConditionModel"]}, "not a JSON object as it should be"),
    ],
)
def test_an_index_that_names_what_is_not_diffusers(
    tmp_path: Path, index: dict[str, Any], words: str
) -> None:
    folder = configs(tmp_path / "f", SD, **index)
    with pytest.raises((BadFile, BadRequest), match=words):
        load(str(folder))


def test_a_module_of_diffusers_own_pipelines_is_no_foreign_code(tmp_path: Path) -> None:
    folder = configs(tmp_path / "f", SD, text_encoder_2=["latent_diffusion", "LDMBertModel"])
    small = {
        "vocab_size": 64,
        "d_model": 16,
        "encoder_layers": 1,
        "encoder_ffn_dim": 16,
        "head_dim": 8,
    }
    write(folder / "text_encoder_2" / "config.json", {**small, "encoder_attention_heads": 2})
    found: Any = load(str(folder))
    part = found.components["text_encoder_2"]
    assert part.class_path == "diffusers.pipelines.latent_diffusion.LDMBertModel"
    assert 1000 < part.params < 100_000


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"auto_map": {"AutoModel": "modeling.Mine"}}, "names code of its own"),
        ({"layers_per_block": 10**9}, "layers_per_block 1000000000; up to 1000"),
        ({"block_out_channels": [10**12] * 4}, "up to 10000000"),
        ({"block_out_channels": "wide"}, "cannot be built from the config of unet"),
        ({"down_block_types": ["NoSuchBlock"] * 4}, "cannot be built from the config of unet"),
    ],
)
def test_a_config_that_no_class_takes(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    folder = configs(tmp_path / "f", SD)
    path = folder / "unet" / "config.json"
    write(path, {**json.loads(path.read_text()), **changes})
    (folder / "unet" / "modeling.py").write_text("raise SystemExit('ran')")
    with pytest.raises((BadFile, BadRequest), match=words):
        load(str(folder))


def test_a_folder_without_an_index_and_files_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"has no model_index\.json"):
        load(str(tmp_path))
    for name in ("a.ckpt", "a.bin", "a.pt", "a.pth"):
        (tmp_path / name).write_bytes(b"PK\x03\x04")
        with pytest.raises(BadFile, match="never loaded"):
            load(str(tmp_path / name))
    with pytest.raises(BadFile, match="no such file or folder"):
        load(str(tmp_path / "none.safetensors"))
    (tmp_path / "text.txt").write_text("hello")
    with pytest.raises(BadFile, match="no safetensors or GGUF header"):
        load(str(tmp_path / "text.txt"))
    adapter = weights(tmp_path / "l.safetensors", **{"a.lora_A.weight": ("F16", 8)})
    with pytest.raises(BadFile, match="an adapter.*--lora"):
        load(str(adapter))
    with pytest.raises(UnknownModel, match="1,234 weights.*no denoiser of the library"):
        load(str(weights(tmp_path / "m.safetensors", w=("F16", 1234))))


def test_pickles_in_a_folder_are_left_alone(tmp_path: Path) -> None:
    folder = configs(tmp_path / "f", SD)
    (folder / "unet" / "diffusion_pytorch_model.bin").write_bytes(b"\x80\x05")
    found: Any = load(str(folder))
    assert "source-pickles" in codes(found)


def test_a_server_looks_at_no_path_and_asks_no_hub(folder: Path) -> None:
    with indoors():
        for word in (str(folder), "somebody/something", "./x.safetensors"):
            with pytest.raises(UnknownModel):
                load(word)


# --- entries of one's own


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "data"
    monkeypatch.setenv("CARDFIT_DATA", str(found))
    return found


def test_an_entry_is_made_counted_and_known_by_name(folder: Path, data: Path) -> None:
    added = verbs.add_model(str(folder), id="my-sd")
    assert Path(added.file) == data / "models" / "my-sd.json"
    assert {stage.name for stage in added.stages} >= {"load", "denoise", "decode"}
    assert added.peak_reserved_bytes == max(stage.reserved_bytes for stage in added.stages)
    entry: Any = load("MY-SD")
    assert entry.is_own and codes(entry) == ["own-entry"]
    assert entry.components == added.model.components
    assert all(
        part.params == part.expected_params for part in entry.components.values() if part.counted
    )
    assert "my-sd" in [each.id for each in api.models()] and not load("sd-turbo").is_own
    answer = api.plan(Request(model="my-sd", **SMALL), cards=["l4"])
    assert "own-entry" in [note.code for note in answer.notes]
    with indoors():
        assert load("my-sd").id == "my-sd"


def test_the_file_is_a_library_entry(folder: Path, tmp_path: Path, data: Path) -> None:
    file = tmp_path / "out" / "e.json"
    verbs.add_model(str(folder), output=file)
    raw = json.loads(file.read_text())
    shipped = json.loads((Path(api.__file__).parent / "library/data/sdxl-base.json").read_text())
    assert raw["id"] == "sd" and set(raw) <= {*Model.model_json_schema()["properties"]}
    assert set(shipped) - set(raw) <= {
        "unverified_parts",
        "task_pipelines",
        "notes",
        "pipeline_config",
    }
    assert Model.model_validate_json(file.read_bytes()).components["unet"].verified
    with pytest.raises(UnknownModel):
        load("sd")  # it was written elsewhere


def test_nothing_is_written_over_and_nothing_half(folder: Path, data: Path, tmp_path: Path) -> None:
    verbs.add_model(str(folder), id="mine")
    before = (data / "models" / "mine.json").read_bytes()
    with pytest.raises(BadFile, match="--force"):
        verbs.add_model(str(folder), id="mine")
    verbs.add_model(str(folder), id="mine", force=True)
    assert (data / "models" / "mine.json").read_bytes() == before
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    path = broken / "unet" / "config.json"
    write(path, {**json.loads(path.read_text()), "cross_attention_dim": 24})  # not the encoder's
    with pytest.raises(CardfitError):
        verbs.add_model(str(broken), id="broken")
    assert [each.name for each in (data / "models").iterdir()] == ["mine.json"]


@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("sdxl-base", "has a model of this name"),
        ("../x", "an id is made of"),
        ("", "an id is made of"),
    ],
)
def test_names_that_an_entry_cannot_have(folder: Path, data: Path, id: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        verbs.add_model(str(folder), id=id)


def test_only_folders_and_repos_become_entries(data: Path) -> None:
    with pytest.raises(BadRequest, match="made from a diffusers folder"):
        verbs.add_model("sdxl-base")


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", "\x00", '{"schema": 1, "id": "bad"}', "[" * 9000]
)
def test_an_own_entry_that_is_none_is_named(data: Path, content: str) -> None:
    (data / "models").mkdir(parents=True)
    (data / "models" / "bad.json").write_text(content)
    with pytest.raises(BadFile, match=r"bad\.json: not a model entry"):
        load("bad")
    assert load("sdxl-base").id == "sdxl-base"  # the library is not shut for it


def test_the_command_adds_and_lists(
    folder: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cardfit.cli.main import run

    assert run(["models", "add", str(folder), "--id", "mine"]) == 0
    out, error = capsys.readouterr()
    assert "denoise" in out and "UNet2DConditionModel" in out and "mine.json" in error
    assert run(["models"]) == 0
    line = next(each for each in capsys.readouterr().out.splitlines() if each.startswith("mine "))
    assert line.rstrip().endswith("own")
    assert run(["models", "add", str(folder), "--id", "two", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "cardfit.added/1" and found["model"]["id"] == "two"
    for words in (["models", "add"], ["models", "sdxl-base", "x"], ["models", "--id", "x"]):
        assert run(words) == 2


# --- anything at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
PARTS = st.sampled_from(["unet", "vae", "text_encoder", "scheduler", "_class_name", "x", "../x"])
LISTED = st.tuples(
    st.sampled_from(["diffusers", "transformers", "os", "..", ""]),
    st.sampled_from(
        [
            "AutoencoderKL",
            "CLIPTextModel",
            "DDIMScheduler",
            "logging",
            "DiffusionPipeline",
            "a.b",
            "",
        ]
    ),
).map(list)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(PARTS, LISTED | JSON, max_size=4))
def test_any_index_is_a_model_or_one_sentence(
    folder: Path, tmp_path: Path, index: dict[str, Any]
) -> None:
    made = tmp_path / "f"
    if not made.exists():
        shutil.copytree(folder, made)
    listed = json.loads((folder / "model_index.json").read_text())
    (made / "model_index.json").write_text(json.dumps({**listed, **index}))
    _answered(made)


CONFIG_KEYS = st.sampled_from(
    ["block_out_channels", "sample_size", "latent_channels", "down_block_types", "in_channels", "scaling_factor",
     "layers_per_block", "quantization_config", "torch_dtype", "auto_map", "norm_num_groups", "other"]
)  # fmt: skip


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(CONFIG_KEYS, JSON, max_size=3))
def test_any_config_is_a_model_or_one_sentence(
    folder: Path, tmp_path: Path, config: dict[str, Any]
) -> None:
    made = tmp_path / "f"
    if not made.exists():
        shutil.copytree(folder, made)
    stated = json.loads((folder / "vae" / "config.json").read_text())
    (made / "vae" / "config.json").write_text(json.dumps({**stated, **config}))
    _answered(made)


def _answered(folder: Path) -> None:
    """A request is made exact, or one sentence says why not."""
    try:
        found: Any = load(str(folder))
        resolve(found, Request(model=str(folder)))
    except CardfitError as refused:
        assert str(refused)
    else:
        assert found.params > 0


def test_a_config_that_is_deep_or_huge_is_refused(tmp_path: Path) -> None:
    folder = configs(tmp_path / "f", SD)
    path = folder / "unet" / "config.json"
    for content in ('{"x": ' + "[" * 400 + "]" * 400 + "}", '{"x": "' + "y" * 5_000_000 + '"}'):
        path.write_text(content)
        with pytest.raises(BadFile, match="far too large"):
            load(str(folder))


def test_a_scheduler_that_is_none_ends_in_one_sentence(folder: Path, tmp_path: Path) -> None:
    made = Path(shutil.copytree(folder, tmp_path / "f"))
    listed = json.loads((made / "model_index.json").read_text())
    write(made / "model_index.json", {**listed, "scheduler": ["diffusers", "NoSuchScheduler"]})
    with pytest.raises(DryRunFailed, match="NoSuchScheduler"):
        api.trace(Request(model=str(made), **SMALL))


def test_a_snapshot_of_the_hubs_cache_is_a_folder(folder: Path, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    made = tmp_path / "models--somebody--tiny" / "snapshots" / commit
    made.parent.mkdir(parents=True)
    shutil.copytree(folder, made)
    found: Any = load(str(made))
    assert found.title == "somebody/tiny@0123456789ab" and found.verified


def test_the_page_says_what_happens(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The case of docs/adding-a-model.md, run: the figures that it prints are those that come out."""
    page = (Path(__file__).parents[2] / "docs" / "adding-a-model.md").read_text(encoding="utf-8")
    program = page.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "adding-a-model.md", "exec"), {})
    added = verbs.add_model("./flux-lite")
    printed = page.partition("$ cardfit models add ./flux-lite")[2].partition("Every part")[0]
    for stage in added.stages:
        assert re.search(rf"{stage.name} .* {gib_text(stage.reserved_bytes)} ", printed), stage
    assert load("flux-lite").components["transformer"].config["num_layers"] == 8
