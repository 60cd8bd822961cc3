"""The pages without a browser: what they show, what they keep to themselves, which status they have."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from cardfit.records.store import Store
from cardfit.web.state import state_of

_spec = importlib.util.spec_from_file_location(
    "make_record", Path(__file__).parents[1] / "records" / "make_record.py"
)
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)
SDXL = "model=sdxl-turbo"


# --- addresses


@pytest.mark.parametrize(
    "query",
    [
        "model=sdxl-turbo&batch=4&offload=model",
        "model=sdxl-turbo&card=rtx-4090&card=l4&ram=32GB&sort=time&price=0.5",
        "model=sdxl-turbo&quantization=unet%3Dbnb-int8&vae_slicing=true",
        "model=ltx-video-2b&num_frames=81&every=1",
    ],
)
def test_an_address_says_the_same_page_again(query):
    from urllib.parse import parse_qsl

    first = state_of(parse_qsl(query))
    again = state_of(parse_qsl(first.query))
    assert first.error is None
    assert (again.question, again.only, again.query) == (first.question, first.only, first.query)
    assert sorted(parse_qsl(first.query)) == sorted(parse_qsl(query))


def test_what_the_model_takes_by_itself_leaves_the_address():
    given = {
        "model": "sdxl-turbo",
        "width": "512",
        "height": "512",
        "batch": "1",
        "os": "linux",
        "sort": "plan",
    }
    found = state_of(given.items())
    assert found.query == "model=sdxl-turbo"
    assert found.question == state_of([("model", "sdxl-turbo")]).question


def test_another_model_keeps_the_place_and_drops_what_was_made():
    given = {
        "model": "flux.1-dev",
        "was": "sdxl-turbo",
        "width": "512",
        "ram": "64GB",
        "sort": "time",
    }
    found = state_of(given.items())
    assert found.model_changed
    assert found.query == "model=flux.1-dev&ram=64GB&sort=time"


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("model=sdxl-turbo&width=500", 422, "beside-width"),
        ("model=sdxl-turbo&width=wide", 422, "beside-width"),
        ("model=no-such-model", 404, "beside-model"),
        ("model=sdxl-turbo&card=no-such-card", 404, "beside-card"),
        ("model=sdxl-turbo&price=free", 422, "beside-price"),
        ("model=sdxl-turbo&sort=best", 422, "beside-sort"),
        ("model=sdxl-turbo&dtype=bf16", 422, "beside-dtype"),
        ("model=omnigen2", 422, "beside-model"),
        ("model=sdxl-turbo&nonsense=1", 422, 'class="alert"'),
    ],
)
def test_what_is_wrong_is_said_and_the_form_stands(client, query, status, said):
    client.get(f"/api/v1/plan?{SDXL}")  # so that the page need not say that it is being worked out
    found = client.get(f"/?{query}")
    assert found.status_code == status
    assert 'role="alert"' in found.text and said in found.text
    assert 'name="model"' in found.text


# --- one card


def test_the_stages_of_a_card_are_those_of_its_settings(client):
    question = {"request": {"model": "sdxl-turbo", "batch": 8}, "cards": ["rtx-3060"]}
    row = client.post("/api/v1/plan", json=question).json()["cards"][0]
    as_set = client.post("/api/v1/plan", json={**question, "settings": row["settings"]}).json()
    text = client.get(f"/card/rtx-3060?{SDXL}&batch=8").text
    for stage in as_set["stages"]:
        assert f"{stage['reserved_bytes'] / 2**30:.1f} GiB" in text
    assert "cardfit rent --card rtx-3060" in text and "from_pretrained" in text


def test_an_unknown_card_and_a_wrong_question_have_a_page_of_their_own(client):
    assert client.get(f"/card/no-such-card?{SDXL}").status_code == 404
    found = client.get("/card/l4?model=sdxl-turbo&width=wide")
    assert found.status_code == 422 and "width is" in found.text


def test_changes_hold_the_rest_as_it_is(client):
    text = client.get(f"/card/rtx-4090/knobs?{SDXL}").text
    assert text.count("<tr>") >= 6
    assert "offload=model" in text and "quantization=unet%3Dfp8-layerwise" in text


# --- by the hour or by the month


def test_the_page_of_a_card_says_where_a_month_becomes_cheaper_than_hours(client, capsys):
    from cardfit.cli.main import run

    path = f"/card/rtx-4090/rent?{SDXL}"
    assert f'hx-get="{path}"' in client.get(f"/card/rtx-4090?{SDXL}").text
    first = client.get(path)
    assert first.status_code == 200 and 'name="rent_hourly" value="' in first.text
    text = client.get(f"{path}&rent_hourly=0.5&rent_monthly=180&rent_hours_per_week=40").text
    line = "rent --hourly 0.5 --monthly 180 --hours-per-week 40 --json"
    assert run(line.split()) == 0
    import json

    (pair,) = json.loads(capsys.readouterr().out)["break_even"]
    assert pair["hours_per_month"] == 360
    assert "From 360 hours a month" in text  # with the outputs that they make, which the page knows


@pytest.mark.parametrize("value", ["much", "-3", "nan", "1e99"])
def test_a_price_that_cannot_be_is_said_beside_its_field(client, value):
    found = client.get(f"/card/rtx-4090/rent?{SDXL}&rent_monthly={value}")
    assert found.status_code == 422
    assert re.search(r'class="beside error" id="rent-said-monthly">[^<]+<', found.text)


# --- measured runs


@pytest.fixture
def stored(serve, tmp_path):
    url = f"sqlite:///{tmp_path / 'store.db'}"
    records = [make_record.record(), make_record.record(id="20261201t120000-0000beef")]
    store = Store(url)
    store.put_all(records)
    store.close()
    return serve(store=url), records


def test_records_are_listed_shown_and_compared(stored):
    client, records = stored
    listed = client.get("/records").text
    assert all(record.id in listed for record in records)
    one = client.get(f"/records/{records[0].id}")
    assert one.status_code == 200 and one.text.count("<h1>") == 1
    query = "&".join(f"record={record.id}" for record in records)
    assert client.get(f"/records/compare?{query}").text.count("<h1>") == 2
    assert client.get("/records/compare").status_code == 422
    assert client.get("/records/nothing").status_code == 422


PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def test_pictures_that_a_run_kept_stand_beside_it_and_nothing_else_is_read(
    serve, tmp_path, monkeypatch
):
    monkeypatch.setenv("CARDFIT_DATA", str(tmp_path / "data"))
    name = "20261201t120000-0000beef"
    folder = tmp_path / "data" / "records" / name
    (folder / "outputs").mkdir(parents=True)
    (folder / "outputs" / "000.png").write_bytes(PNG)
    (tmp_path / "secret.png").write_bytes(b"secret")
    (folder / "outputs" / "link.png").symlink_to(tmp_path / "secret.png")
    outputs = (
        "outputs/000.png",
        "../../../secret.png",
        str(tmp_path / "secret.png"),
        "outputs/link.png",
        "outputs/gone.png",
        "record.json",
    )
    store = Store(f"sqlite:///{tmp_path / 'store.db'}")
    store.put_all([make_record.record(id=name, outputs=outputs)])
    store.close()
    client = serve(store=f"sqlite:///{tmp_path / 'store.db'}")
    page = client.get(f"/records/compare?record={name}&record={name}").text
    assert page.count(f'src="/records/{name}/output/0"') == 2 and page.count("<img") == 2
    found = client.get(f"/records/{name}/output/0")
    assert (found.headers["content-type"], found.content) == ("image/png", PNG)
    for place in ("1", "2", "3", "4", "5", "6", "-1", "99"):
        assert client.get(f"/records/{name}/output/{place}").status_code == 404
    assert client.get(f"/records/{name}/output/x").status_code == 422
    assert client.get(f"/api/v1/records/{name}").json()["outputs"] == []


def test_the_first_frame_of_a_clip_is_shown(serve, tmp_path, monkeypatch):
    np, lossless = pytest.importorskip("numpy"), pytest.importorskip("cardfit.media.lossless")
    pytest.importorskip("av")
    monkeypatch.setenv("CARDFIT_DATA", str(tmp_path / "data"))
    name = "20261201t120000-0000beef"
    folder = tmp_path / "data" / "records" / name
    (folder / "outputs").mkdir(parents=True)
    frames = [np.full((16, 24, 3), shade, np.uint8) for shade in (200, 10)]
    lossless.write(folder / "outputs" / "000", frames, 8, one=False)
    store = Store(f"sqlite:///{tmp_path / 'store.db'}")
    store.put_all([make_record.record(id=name, outputs=("outputs/000.mkv",))])
    store.close()
    client = serve(store=f"sqlite:///{tmp_path / 'store.db'}")
    found = client.get(f"/records/{name}/output/0").content
    assert found.startswith(b"\x89PNG") and found[16:24] == bytes([0, 0, 0, 24, 0, 0, 0, 16])


def test_the_api_gives_records_without_their_inputs(stored):
    client, records = stored
    found = client.get("/api/v1/records").json()["records"]
    assert {each["id"] for each in found} == {record.id for record in records}
    assert all(each["inputs"]["prompt"] is None and each["latents"] == [] for each in found)
