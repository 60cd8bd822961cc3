"""Records between stores: each once, with the way they took, without what is nobody's business, and none that lies."""

from __future__ import annotations

import importlib.util
import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.cli.main import run
from cardfit.measure import sharing
from cardfit.records import files, scrub
from cardfit.records.doubts import doubt
from cardfit.records.identity import content_hash
from cardfit.records.models import (
    Inputs,
    Machine,
    Outcome,
    Predicted,
    PredictedStage,
    Quality,
    Reason,
    Record,
)
from cardfit.records.opening import opened
from cardfit.request import Settings
from cardfit.units import GIB

_spec = importlib.util.spec_from_file_location(
    "make_record", Path(__file__).with_name("make_record.py")
)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)


@pytest.fixture(params=["postgresql", "folder"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A team's store, empty."""
    if request.param == "folder":
        return str(tmp_path / "shared")
    name = request.getfixturevalue("database")
    return str(request.getfixturevalue("server").url(name))


def own(*records: Record) -> None:
    with opened() as base:
        base.put_all(records)


def of(where: str | None = None) -> tuple[Record, ...]:
    with opened(where) as base:
        return base.list()


# --- each once


def test_pushing_twice_sends_once(team: str, data: Path) -> None:
    one, two = make_record.record(), make_record.record(model="svd")
    own(one, two)
    (copy,) = sharing.push(team).copies
    assert (copy.new, copy.updated, copy.same, copy.refused) == (2, 0, 0, ())
    (copy,) = sharing.push(team).copies
    assert (copy.new, copy.updated, copy.same, copy.refused) == (0, 0, 2, ())
    assert len(of(team)) == 2 and of() == (one, two)  # one's own keep their prompts
    judged = one.model_copy(update={"quality": QUALITY})
    own(judged)
    (copy,) = sharing.push(team).copies
    assert (copy.new, copy.updated, copy.same) == (0, 1, 1)
    assert {each.id: each.quality for each in of(team)} == {one.id: QUALITY, two.id: None}
    (copy,) = sharing.push(team, model="svd").copies
    assert (copy.new, copy.same) == (0, 1)


QUALITY = Quality(
    reference="20261203t120000-00000000", frames=1, psnr_db=30.0, ssim=0.9, ssim_lowest=0.9
)


def test_merging_gives_both_what_either_had(
    team: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = make_record.record(), make_record.record()
    own(one)
    sharing.merge(team)
    monkeypatch.setenv("CARDFIT_DATA", str(tmp_path / "another"))
    own(two)
    out, back = sharing.merge(team).copies
    assert (out.new, back.new) == (1, 1)
    assert {each.id for each in of()} == {each.id for each in of(team)} == {one.id, two.id}
    again = sharing.merge(team).copies
    assert [(copy.new, copy.updated, copy.same) for copy in again] == [(0, 0, 2), (0, 0, 2)]


def test_a_record_names_the_stores_it_came_through(
    team: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(make_record.record())
    with opened() as mine, opened(team) as theirs:
        ids = [mine.id, theirs.id]
    sharing.push(team)
    monkeypatch.setenv("CARDFIT_DATA", str(tmp_path / "another"))
    sharing.pull(team)
    (record,) = of()
    assert [step.store for step in record.origin] == ids and None not in ids and len(set(ids)) == 2
    assert all(datetime.now(UTC) - step.at < timedelta(minutes=5) for step in record.origin)


def test_a_hash_is_of_the_measurement_alone() -> None:
    record = make_record.record()
    note = Reason(code="x", text="words")
    alike = [
        record.without_inputs(),
        record.model_copy(update={"notes": (note,), "latents": (), "version": 2}),
        record.model_copy(update={"outcome": Outcome(kind="ok", why=note)}),
        files.parse(files.text_of(record), "here"),
    ]
    assert {content_hash(each) for each in alike} == {content_hash(record)}
    other = record.model_copy(update={"repetitions": (make_record.repetition(1.5),)})
    assert content_hash(other) != content_hash(record)


# --- nobody's business


def test_what_others_get_holds_no_paths_hosts_or_prompts(
    team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub.socket, "gethostname", lambda: "annas-studio")
    scrub._host.cache_clear()
    secret = "/home/anna maria/models/secret project"
    said = f"{secret} could not be written on annas-studio.lan (postgresql://anna@db.lan/x, C:\\Users\\anna\\x)"
    why = Reason(code="x", args={"path": secret, "count": 3, "host": "annas-studio"}, text=said)
    row = make_record.repetition(1.0).model_copy(update={"silent": {"power_mean_w": why}})
    record = make_record.record(
        notes=(why,), repetitions=(row,), outcome=Outcome(kind="error", why=why, log=said),
        inputs=Inputs(prompt="a cat", negative_prompt="a dog", prompt_sha256="0" * 64),
    )  # fmt: skip
    own(record)
    sharing.push(team)
    scrub._host.cache_clear()
    (shared,) = of(team)
    text = files.text_of(shared)
    for word in ("anna", "maria", "secret", "db.lan", "Users", "a cat", "a dog"):
        assert word not in text
    assert shared.notes[0].args == {"path": "<path>", "count": 3, "host": "<host>"}
    assert "could not be written on <host> (<address>, <path>)" in shared.notes[0].text
    assert "/proc/meminfo" in scrub.scrubbed("cannot read /proc/meminfo")


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=200))
def test_scrubbing_again_changes_nothing(text: str) -> None:
    once = scrub.scrubbed(text)
    assert scrub.scrubbed(once) == once


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.sampled_from(
            ["/home/anna/x", "~/x", "C:\\Users\\anna", "//srv/anna", "a", " ", ":", "\n", "(", "'"]
        )
    )
)
def test_no_path_comes_through(parts: list[str]) -> None:
    assert "anna" not in scrub.scrubbed(" ".join(parts))


# --- what cannot be


ON = Machine(os="linux", card="rtx-4090", card_memory_bytes=24 * GIB)
STAGE = PredictedStage(
    name="denoise", component="transformer", calls=1, weights_bytes=12 * GIB, activation_bytes=GIB,
    allocated_bytes=13 * GIB, reserved_bytes=14 * GIB,
)  # fmt: skip
BEFORE = Predicted(
    stages=(STAGE,), allocated_bytes=13 * GIB, reserved_bytes=14 * GIB, host_bytes=0, seconds=10.0
)


def on_card(
    seconds: float = 9.0, reserved: int = 14 * GIB, allocated: int | None = None, **more: Any
) -> Record:
    row = make_record.repetition(seconds, reserved)
    stage = row.stages[0].model_copy(
        update={"allocated_peak_bytes": reserved if allocated is None else allocated}
    )
    figures = more.pop("figures", {})
    row = row.model_copy(update={"stages": (stage,), "figures": figures})
    fields = {"machine": ON, "predicted": BEFORE, "repetitions": (row,), **more}
    return make_record.record(**fields)  # type: ignore[no-any-return]


LIES: dict[str, Record] = {
    "doubt-time": on_card(created=datetime.now(UTC) + timedelta(days=3)),
    "doubt-seconds": on_card(-1.0),
    "doubt-figure": on_card(figures={"sm_clock_mean_hz": 9e12}),
    "doubt-negative": on_card(reserved=-1),
    "doubt-allocated": on_card(reserved=13 * GIB, allocated=14 * GIB),
    "doubt-card": on_card(machine=ON.model_copy(update={"card_memory_bytes": 96 * GIB})),
    "doubt-peak": on_card(reserved=30 * GIB),
    "doubt-weights": on_card(reserved=5 * GIB),
    "doubt-quick": on_card(0.4),
}


def memory_of(card: str) -> int | None:
    return {"rtx-4090": 24 * GIB}.get(card)


@pytest.mark.parametrize("code", LIES)
def test_a_record_that_lies_is_told_by_its_lie(code: str) -> None:
    found = doubt(LIES[code], memory_of)
    assert found is not None and found.code == code
    assert doubt(on_card(), memory_of) is None


@pytest.mark.parametrize(
    "record",
    [
        on_card(reserved=2 * GIB, settings=Settings(offload="model")),
        on_card(reserved=30 * GIB, machine=ON.model_copy(update={"os": "windows"})),  # it spills
        on_card(60.0),
        on_card(0.6),
        on_card(reserved=23 * GIB, figures={"device_used_peak_bytes": 24 * GIB, "heat_peak_c": 84.0}),
        on_card(outcome=Outcome(kind="oom"), reserved=GIB),
        on_card(created=datetime.now(UTC) + timedelta(hours=20)),  # a clock that is set wrong
        make_record.record(),
    ],
)  # fmt: skip
def test_a_record_that_is_only_odd_is_none_of_these(record: Record) -> None:
    assert doubt(record, memory_of) is None


@pytest.mark.parametrize(
    "record",
    [
        on_card(math.nan),
        on_card(math.inf),
        on_card(0.0),
        on_card(figures={"power_mean_w": math.nan}),
        on_card(figures={"gpu_use_mean_share": 7.0}),
        on_card(created=datetime.min),
        on_card(created=datetime.max),
        on_card(reserved=10**30),
    ],
)
def test_figures_that_are_none_are_refused(record: Record) -> None:
    assert doubt(record, memory_of) is not None


def test_what_lies_is_refused_and_the_rest_goes_on(
    team: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = on_card()
    own(good, *LIES.values())
    assert run(["records", "push", team]) == 1
    caught = capsys.readouterr()
    assert "1 new, 0 brought up to date, 0 there already, 9 refused" in caught.out
    assert f"{LIES['doubt-peak'].id}: its peak is 30.0 GiB; rtx-4090 has 24.0 GiB" in caught.err
    assert [each.id for each in of(team)] == [good.id]
    assert run(["records", "push", team, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "cardfit.copied/1" and found["copies"][0]["same"] == 1
    assert {each["why"]["code"] for each in found["copies"][0]["refused"]} == set(LIES)


def test_a_file_of_lies_and_nonsense_is_imported_as_far_as_it_is_true(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = on_card()
    taken = on_card(id=good.id, model="svd")
    bodies = [json.loads(files.text_of(each)) for each in (good, good, taken, LIES["doubt-peak"])]
    odd = [
        {"schema": "cardfit.record", "version": 99},
        {"schema": "x"},
        7,
        {**bodies[0], "extra": 1},
    ]
    huge = bodies[0] | {"id": "20261203t120000-00000001"}
    huge["request"] = huge["request"] | {"width": 10**30}
    file = tmp_path / "export.json"
    file.write_text(json.dumps({"schema": "cardfit.records/1", "records": [*odd, *bodies, huge]}))
    found = sharing.bring_in(file).copies[0]
    assert (found.new, found.same) == (2, 1)
    assert sorted(each.why.code for each in found.refused) == [
        "doubt-peak", "record-bad-field", "record-newer", "record-not-a-record", "record-not-a-record",
        "record-of-another-run",
    ]  # fmt: skip
    assert {each.id for each in of()} == {good.id, huge["id"]}


# --- a folder of files


def test_a_shared_folder_reads_what_a_run_leaves(tmp_path: Path) -> None:
    folder, record = tmp_path / "shared", make_record.record()
    files.write(record, folder)
    with opened(str(folder)) as base:
        assert base.list() == (record,) and base.hashes() == {record.id: content_hash(record)}
        base.put(record.model_copy(update={"quality": QUALITY}))
        assert base.list()[0].quality == QUALITY
    assert [each.name for each in folder.iterdir() if each.is_dir()] == []


def test_states_written_at_once_are_both_kept_and_one_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    begun = make_record.record(finished=False)
    ended = begun.model_copy(update={"finished": True})
    with opened(str(folder)) as base:
        base.put(ended)
        (one,) = folder.glob("*.json")
        kept = one.read_bytes()
        one.unlink()
        base.put(begun)
        one.write_bytes(kept)  # as if two had looked before either wrote
        assert base.list() == (ended,) and base.get(begun.id) == ended
        assert base.hashes() == {ended.id: content_hash(ended)}
        (folder / "20261203t120000-00000009-nothing.json").write_text("{")
        (folder / f"20261203t120000-00000009-{'0' * 32}.json").write_text("{")
        (folder / "README.txt").write_text("no record")
        assert len(list(base.each())) == 2
        base.remove([begun.id])
        assert not list(folder.glob(f"{begun.id}*"))
