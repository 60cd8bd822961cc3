"""The pages without a browser: what they show, what they keep to themselves, which status they have."""

from __future__ import annotations

import importlib.util
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
        ("model=sdxl-turbo&dtype=fp16", 422, "beside-dtype"),
        ("model=svd", 422, "beside-model"),
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


def test_the_api_gives_records_without_their_inputs(stored):
    client, records = stored
    found = client.get("/api/v1/records").json()["records"]
    assert {each["id"] for each in found} == {record.id for record in records}
    assert all(each["inputs"]["prompt"] is None and each["latents"] == [] for each in found)
