"""All workflows of the template package: none crashes the reader, nearly all give a full request or one question."""

from __future__ import annotations

import importlib.util
import time
from functools import cache
from pathlib import Path

import pytest

from cardfit.comfy.reader import read_workflow
from cardfit.comfy.result import Reading

_spec = importlib.util.spec_from_file_location("templates", Path(__file__).parent / "templates.py")
templates = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(templates)

# what may be asked of a picture or a video that is loaded: all that its file says and the workflow does not
OF_A_FILE = {"width", "height", "frames", "fps"}


@cache
def reading(name: str) -> Reading:
    return read_workflow(templates.raw(name), name=name)


def test_the_package_has_its_644_workflows():
    assert len(templates.names()) >= 644


def test_none_of_them_crashes_the_reader():
    for name in templates.names():
        found = reading(name)
        for request in found.requests:
            assert request.passes


def _pictures(found: Reading) -> bool:
    """Whether a picture or video is made here, by models at hand."""
    return bool(found.requests)


def _settled(found: Reading) -> bool:
    """A full request, or questions that only ask what a loaded file says of itself."""
    full = all(each.complete for each in found.requests)
    asked = {each.node for each in found.missing if each.input not in OF_A_FILE}
    types = {each.why for each in found.missing if "not say how large" not in each.why}
    return full or (bool(found.missing) and not asked and not types)


def test_at_least_95_in_100_are_full_or_ask_for_exactly_what_is_missing():
    made = [name for name in templates.local() if _pictures(reading(name))]
    open_ = [name for name in made if not _settled(reading(name))]
    assert len(made) >= 210
    assert len(open_) <= 0.05 * len(made), open_


def test_answers_make_full_requests_of_them():
    """Every question about a file, answered, leaves nothing open; one answer may raise another question."""
    for name in templates.local():
        found = reading(name)
        if not found.missing or not _settled(found):
            continue
        sizes = {"width": 1024, "height": 768, "frames": 121, "fps": 24}
        answers: dict[str, object] = {}
        again = found
        for _ in range(3):
            answers |= {f"{each.id}.{each.input}": sizes[each.input] for each in again.missing}
            again = read_workflow(templates.raw(name), answers, name=name)
            if not again.missing:
                break
        assert not again.missing, name
        assert all(each.complete for each in again.requests), name


def test_workflows_that_only_call_remote_programs_ask_for_nothing():
    found = reading("api_bfl_flux_1_kontext_pro_image")
    assert found.requests == () and found.missing == ()
    assert [note.code for note in found.notes] == ["comfy-no-sampler"]
    assert found.unknown_nodes


def test_the_largest_file_is_read_in_a_second():
    name = max(templates.names(), key=lambda each: templates.path(each).stat().st_size)
    read_workflow(templates.path(name))  # the node data is loaded once in a process
    start = time.process_time()
    read_workflow(templates.path(name))
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize("name", ["video_wan2_2_14B_t2v", "video_ltx2_t2v"])
def test_no_stale_widget_is_used(name: str):
    """The size comes from what feeds it: the latent's own widgets say otherwise."""
    origins = reading(name).requests[0].origins
    stale = {"EmptyLTXVLatentVideo.width", "EmptyLTXVLatentVideo.length", "KSamplerAdvanced.steps"}
    assert not stale & {origin for each in origins.values() for origin in each}
