"""Where weights are, against the hooks that move them: accelerate's and diffusers' own, run on CPU on tiny modules.

Both sides answer the same question at the moment each layer computes: which modules' own tensors are on the card? On
the hooks' side moving is replaced by noting, so that no GPU is needed; when what is moved is the hooks' own doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from cardfit.errors import BadRequest
from cardfit.predict.allocator import Allocator
from cardfit.predict.offload import ModelOffload, Waiting
from cardfit.predict.placement import COPY_STREAM, GroupOffload, placement, streams
from cardfit.request import ExactRequest, Offload, Settings
from cardfit.trace.stream import Binding, Component, Event, Module, Op, Segment, Stream, Trace

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

import accelerate.hooks  # noqa: E402
from accelerate import cpu_offload, cpu_offload_with_hook  # noqa: E402
from diffusers.hooks import group_offloading  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from cardfit.trace.dryrun import describe  # noqa: E402

REQUEST = ExactRequest(
    model="tiny",
    task="text-to-image",
    width=64,
    height=64,
    num_frames=1,
    num_inference_steps=2,
    guidance_scale=1.0,
    prompt_tokens=8,
)
Snapshot = tuple[
    str, frozenset[str]
]  # a layer that computes, the modules whose tensors are on the card


class Watch:
    """Whose tensors are on the card, and what was there when each layer computed."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.seen: list[Snapshot] = []

    def look(self, path: str) -> None:
        self.seen.append((path, frozenset(self.there)))


# -- tiny modules --------------------------------------------------------------------------------


class Norm(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x: Any) -> Any:
        return x * self.weight


class Block(torch.nn.Module):  # type: ignore[misc]
    """A transformer block: a table of its own, a norm that is called twice, two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.ones(4))
        self.norm = Norm()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4, bias=False)

    def forward(self, x: Any) -> Any:
        return self.second(self.norm(self.first(self.norm(x * self.table))))


class Denoiser(torch.nn.Module):  # type: ignore[misc]
    """A top-level parameter, an embedder, two lists of blocks, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4))
        self.embed = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        self.blocks = torch.nn.ModuleList([Block() for _ in range(3)])
        self.single = torch.nn.ModuleList([Block() for _ in range(2)])
        self.head = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        x = self.embed(x) * self.scale
        for block in [*self.blocks, *self.single]:
            x = block(x)
        return self.head(x)


class Stack(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(10, 4)
        self.block = torch.nn.ModuleList([Block()])

    def forward(self, tokens: Any) -> Any:
        return self.block[0](self.embed_tokens(tokens))


class Encoder(torch.nn.Module):  # type: ignore[misc]
    """Like T5: ``shared`` is never called, its weight is that of ``encoder.embed_tokens``."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = torch.nn.Embedding(10, 4)
        self.encoder = Stack()
        self.encoder.embed_tokens.weight = self.shared.weight

    def forward(self, tokens: Any) -> Any:
        return self.encoder(tokens)


class AutoencoderTiny(torch.nn.Module):  # type: ignore[misc]
    """Called by ``encode`` and ``decode``, never by forward."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        self.decoder = Block()
        self.post = torch.nn.Linear(4, 4)

    def encode(self, x: Any) -> Any:
        return self.encoder(x)

    def decode(self, x: Any) -> Any:
        return self.decoder(self.post(x))


def given(module: Any) -> Any:
    return torch.tensor([1, 2]) if isinstance(module, Encoder) else torch.ones(2, 4)


# -- a trace of them -----------------------------------------------------------------------------


@contextmanager
def listening(enter: Callable[[Any], None], leave: Callable[[Any], None]) -> Iterator[None]:
    hooks = torch.nn.modules.module
    handles = (
        hooks.register_module_forward_pre_hook(lambda module, _args: enter(module)),
        hooks.register_module_forward_hook(lambda module, _args, _out: leave(module)),
    )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def stream_of(number: int, module: Any, method: str) -> Stream:
    """Entries and exits of the modules below ``module`` during one call of ``method``."""
    index = {id(part): n for n, (path, part) in enumerate(module.named_modules()) if path}
    events: list[Event] = []

    def note(op: Op, part: Any) -> None:
        if id(part) in index:
            events.append((op, index[id(part)], 0, 0))

    with (
        listening(lambda part: note(Op.ENTER, part), lambda part: note(Op.EXIT, part)),
        torch.no_grad(),
    ):
        run(module, [method])
    return Stream(number, method, "", 0, tuple(events), (), (), ())


def trace_of(
    modules: dict[str, Any], calls: list[tuple[str, str]], sequence: tuple[str, ...] = ()
) -> Trace:
    names = list(modules)
    streams, events = [], list[Event]()
    for name, method in calls:
        number = names.index(name)
        streams.append(stream_of(number, modules[name], method))
        events += [(Op.STAGE, 0, 0, 0), (Op.ON, number, 0, 0)]
        events += [(Op.CALL, len(streams) - 1, 0, 0), (Op.OFF, number, 0, 0)]
    return Trace(
        request=REQUEST,
        settings=Settings(),
        versions={},
        pipeline="Tiny",
        offload_sequence=sequence,
        components=tuple(describe(name, module) for name, module in modules.items()),
        recasts=(),
        stages=(("denoise", names[0]),),
        streams=tuple(streams),
        timeline=(Segment(tuple(events), (Binding((), ()),)),),
        sites=(("", ""),),
    )


def ours(
    trace: Trace, offload: Offload, watched: Callable[[Module], bool], **knobs: Any
) -> list[Snapshot]:
    """What the placement has on the card when each watched module computes."""
    allocator = Allocator()
    placed = placement(trace, Settings(offload=offload, **knobs), allocator)
    seen: list[Snapshot] = []

    def look(number: int, module: Module) -> None:
        held = {(c, m) for c, m in placed.held if placed.held[c, m]}
        paths = frozenset(name_in(trace.components[c], m) for c, m in held)
        seen.append((f"{trace.components[number].name}.{module.path}", paths))

    placed.start()
    number = 0
    for op, a, _, _ in trace.timeline[0].events:
        if op == Op.ON:
            number = a
        elif op == Op.OFF:
            placed.off(a)
        elif op == Op.CALL:
            placed.on(number, trace.streams[a].method)
            for inner, index, _, _ in trace.streams[a].events:
                module = trace.components[number].modules[index]
                if inner == Op.EXIT:
                    placed.leave(number, index)
                    continue
                placed.enter(number, index)
                if watched(module):
                    look(number, module)
    assert placed.weights_bytes == allocator.allocated_bytes
    return seen


def name_in(component: Component, index: int) -> str:
    return f"{component.name}.{component.modules[index].path}"


# -- the hooks' side -----------------------------------------------------------------------------


def owners(name: str, module: Any) -> dict[int, str]:
    """Tensor -> the module that a trace books it under."""
    found: dict[int, str] = {}
    for path, part in module.named_modules():
        for tensor in part.parameters(recurse=False):
            found.setdefault(id(tensor), f"{name}.{path}")
    return found


def is_layer(part: Any) -> bool:
    return isinstance(part, (torch.nn.Linear, torch.nn.Embedding, Norm))


def layer(module: Module) -> bool:
    return module.linear or module.kind in ("Embedding", "Norm")


def watching(watch: Watch, name: str, module: Any) -> None:
    """Look whenever a layer computes: inside all hooks."""
    for path, part in module.named_modules():
        if is_layer(part):

            def forward(x: Any, path: str = path, plain: Any = part.forward) -> Any:
                watch.look(f"{name}.{path}")
                return plain(x)

            part.forward = forward


class Stream_(SimpleNamespace):
    def synchronize(self) -> None:
        """Nothing to wait for."""


def grouped(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    module: Any,
    kind: str,
    *,
    stream: bool,
    together: int = 1,
    low: bool = False,
) -> Watch:
    """``module`` under diffusers' group offloading, moving replaced by noting."""
    watch, owner = Watch(), owners(name, module)

    def members(group: Any) -> set[str]:
        held = [p for m in group.modules for p in m.parameters()] + list(group.parameters)
        return {owner[id(tensor)] for tensor in held}

    class Group(group_offloading.ModuleGroup):  # type: ignore[misc]
        def _init_cpu_param_dict(self) -> dict[Any, Any]:
            return {}

        def onload_(self) -> None:
            watch.there |= members(self)

        def offload_(self) -> None:
            watch.there -= members(self)

    monkeypatch.setattr(group_offloading, "ModuleGroup", Group)
    watching(watch, name, module)
    config = group_offloading.GroupOffloadingConfig(
        onload_device=torch.device("cpu"),
        offload_device=torch.device("cpu"),
        offload_type=group_offloading.GroupOffloadingType(kind),
        non_blocking=False,
        record_stream=False,
        low_cpu_mem_usage=low,
        num_blocks_per_group=together,
        stream=Stream_() if stream else None,
    )
    group_offloading._apply_group_offloading(module, config)
    return watch


def run(module: Any, methods: list[str], device: str = "cpu") -> None:
    with torch.no_grad():
        for method in methods:
            call = module if method == "forward" else getattr(module, method)
            call(given(module).to(device))


GROUPS: list[tuple[str, Offload]] = [("block_level", "group-block"), ("leaf_level", "group-leaf")]


@pytest.mark.parametrize(("kind", "offload"), GROUPS)
@pytest.mark.parametrize("make", [Denoiser, Encoder])
def test_streamed_groups(
    monkeypatch: pytest.MonkeyPatch, make: type, kind: str, offload: Offload
) -> None:
    """The first forward learns the order, the next ones fetch one group ahead."""
    module = make()
    trace = trace_of({"part": module}, [("part", "forward")] * 3)
    watch = grouped(monkeypatch, "part", module, kind, stream=True)
    run(module, ["forward"] * 3)
    assert ours(trace, offload, layer) == watch.seen
    assert len(watch.seen) % 3 == 0


@pytest.mark.parametrize(("kind", "offload"), GROUPS)
@pytest.mark.parametrize("make", [Denoiser, Encoder])
def test_groups_without_stream_come_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch, make: type, kind: str, offload: Offload
) -> None:
    """Every forward is like the first: nothing is fetched ahead."""
    module = make()
    trace = trace_of({"part": module}, [("part", "forward")] * 2)
    watch = grouped(monkeypatch, "part", module, kind, stream=False)
    run(module, ["forward"] * 2)
    assert ours(trace, offload, layer, use_stream=False) == watch.seen
    first = ours(trace, offload, layer)[: len(watch.seen) // 2]
    assert first == watch.seen[: len(first)]  # a streamed first forward is the same


@pytest.mark.parametrize("together", [1, 2, 3, 5])
def test_several_blocks_in_a_group(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    """A list of 3 and one of 2 blocks: the last group of a list may be smaller, none spans two lists."""
    module = Denoiser()
    trace = trace_of({"part": module}, [("part", "forward")] * 2)
    watch = grouped(monkeypatch, "part", module, "block_level", stream=False, together=together)
    run(module, ["forward"] * 2)
    knobs = {"use_stream": False, "num_blocks_per_group": together}
    assert ours(trace, "group-block", layer, **knobs) == watch.seen
    held = dict(watch.seen)["part.blocks.0.first"]
    assert ("part.blocks.1.first" in held) == (together > 1)
    assert "part.single.0.first" not in held


def test_a_stream_takes_single_blocks_whatever_is_asked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module = Denoiser()
    trace = trace_of({"part": module}, [("part", "forward")] * 2)
    watch = grouped(monkeypatch, "part", module, "block_level", stream=True, together=3)
    run(module, ["forward"] * 2)
    knobs = {"use_stream": True, "num_blocks_per_group": 3}
    assert ours(trace, "group-block", layer, **knobs) == watch.seen
    assert streams(Settings(offload="group-block"))
    assert not streams(Settings(offload="group-block", num_blocks_per_group=3))


@pytest.mark.parametrize(("kind", "offload"), GROUPS)
def test_pinning_while_copying_moves_the_same(
    monkeypatch: pytest.MonkeyPatch, kind: str, offload: Offload
) -> None:
    module = Denoiser()
    trace = trace_of({"part": module}, [("part", "forward")] * 3)
    watch = grouped(monkeypatch, "part", module, kind, stream=True, low=True)
    run(module, ["forward"] * 3)
    assert ours(trace, offload, layer, low_cpu_mem_usage=True) == watch.seen


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(("kind", "offload"), GROUPS)
def test_groups_on_disk_move_the_same_and_leave_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, offload: Offload, streamed: bool
) -> None:
    """diffusers' own onload and offload run here: files on disk, a stand-in for the stream, no pinning."""
    module = Denoiser()
    trace = trace_of({"part": module}, [("part", "forward")] * 3)
    watch, owner = Watch(), owners("part", module)
    group = group_offloading.ModuleGroup
    load, away = group.onload_, group.offload_

    def members(self: Any) -> set[str]:
        return {owner[id(tensor)] for tensor in self.tensor_to_key if id(tensor) in owner}

    def onload(self: Any) -> None:
        load(self)
        watch.there |= members(self)

    def offload_(self: Any) -> None:
        away(self)
        watch.there -= members(self)

    backend = SimpleNamespace(
        Stream=Stream_, stream=lambda _: nullcontext(), current_stream=Stream_
    )
    monkeypatch.setattr(group, "onload_", onload)
    monkeypatch.setattr(group, "offload_", offload_)
    monkeypatch.setattr(group_offloading, "TorchDeviceBackend", lambda _: backend)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    watching(watch, "part", module)
    config = group_offloading.GroupOffloadingConfig(
        onload_device=torch.device("cpu"),
        offload_device=torch.device("cpu"),
        offload_type=group_offloading.GroupOffloadingType(kind),
        non_blocking=False,
        record_stream=False,
        low_cpu_mem_usage=False,
        num_blocks_per_group=1,
        offload_to_disk_path=str(tmp_path),
        stream=Stream_() if streamed else None,
    )
    group_offloading._apply_group_offloading(module, config)
    run(module, ["forward"] * 3)
    knobs = {"use_stream": streamed, "offload_to_disk": True}
    assert ours(trace, offload, layer, **knobs) == watch.seen
    placed = placement(trace, Settings(offload=offload, **knobs), Allocator())
    written = sum(
        tensor.numel() * tensor.element_size()
        for file in tmp_path.iterdir()
        for tensor in load_file(file).values()
    )
    assert placed.waiting().disk_bytes == written > 0
    assert placed.waiting().pageable_bytes == placed.waiting().pinned_bytes == 0
    assert (placed.waiting().passing_bytes > 0) == streamed


def test_an_autoencoder_goes_by_leaves_and_fetches_nothing_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``decode`` is no forward, so the order is never learned; both offloads take an autoencoder by leaves."""
    module = AutoencoderTiny()
    methods = ["encode", "decode", "decode"]
    trace = trace_of({"vae": module}, [("vae", method) for method in methods])
    watch = grouped(monkeypatch, "vae", module, "leaf_level", stream=True)
    run(module, methods)
    assert ours(trace, "group-leaf", layer) == watch.seen
    assert ours(trace, "group-block", layer) == watch.seen
    assert all(len(there) <= 2 for _, there in watch.seen)


def test_by_blocks_an_autoencoder_would_decode_without_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Why: what belongs to no block waits for a forward that never comes."""
    module = AutoencoderTiny()
    watch = grouped(monkeypatch, "vae", module, "block_level", stream=True)
    run(module, ["decode"])
    assert ("vae.post", frozenset()) in watch.seen


def test_a_streamed_group_has_segments_of_its_own() -> None:
    module = Denoiser()
    trace = trace_of({"part": module}, [("part", "forward")])
    placed = placement(trace, Settings(offload="group-block"), Allocator())
    assert isinstance(placed, GroupOffload)
    placed.on(0, "forward")
    (root,) = {block.pool[0] for blocks in placed.held.values() for block in blocks}
    assert root == 0  # what belongs to no block comes in on the default stream
    names = [m.path for m in trace.components[0].modules]
    placed.enter(0, names.index("blocks.0"))
    (block,) = placed.held[0, names.index("blocks.0.first")][:1]
    assert block.pool[0] == COPY_STREAM


def test_pinned_memory_is_rounded_to_powers_of_two() -> None:
    weights = (("weight", 3000, "bfloat16"), ("bias", 100, "bfloat16"))
    part = Component("t", "Fake", "bfloat16", (Module("", "Linear", weights, linear=True),))
    trace = trace_of({"part": Norm()}, [])
    trace = replace(trace, components=(part,))
    by_leaf = placement(trace, Settings(offload="group-leaf"), Allocator())
    assert by_leaf.waiting() == Waiting(pinned_bytes=4096 + 128)
    by_block = placement(trace, Settings(offload="group-block"), Allocator())
    assert by_block.waiting() == Waiting(pageable_bytes=3100)  # no block: not streamed, not pinned
    low = placement(trace, Settings(offload="group-leaf", low_cpu_mem_usage=True), Allocator())
    assert low.waiting() == Waiting(pageable_bytes=3100, passing_bytes=4224, in_files=True)
    plain = placement(trace, Settings(offload="group-leaf", use_stream=False), Allocator())
    assert plain.waiting() == Waiting(pageable_bytes=3100)


# -- accelerate ----------------------------------------------------------------------------------


def sequentially(monkeypatch: pytest.MonkeyPatch, name: str, module: Any) -> Watch:
    """``module`` under accelerate's cpu_offload, with meta as the card."""
    watch, owner = Watch(), owners(name, module)
    names = {
        id(part): {owner[id(tensor)] for tensor in part.parameters(recurse=False)}
        for part in module.modules()
    }
    hook = accelerate.hooks.AlignDevicesHook
    before, after = hook.pre_forward, hook.post_forward

    def pre(self: Any, part: Any, *args: Any, **kwargs: Any) -> Any:
        if self.offload:
            watch.there |= names[id(part)]
        return before(self, part, *args, **kwargs)

    def post(self: Any, part: Any, output: Any) -> Any:
        if self.offload:
            watch.there -= names[id(part)]
        return after(self, part, output)

    monkeypatch.setattr(hook, "pre_forward", pre)
    monkeypatch.setattr(hook, "post_forward", post)
    watching(watch, name, module)
    cpu_offload(module, torch.device("meta"), offload_buffers=bool(module._parameters))
    return watch


@pytest.mark.parametrize("make", [Denoiser, Encoder])
def test_sequential(monkeypatch: pytest.MonkeyPatch, make: type) -> None:
    module = make()
    trace = trace_of({"part": module}, [("part", "forward")] * 2)
    watch = sequentially(monkeypatch, "part", module)
    run(module, ["forward"] * 2, "meta")
    assert ours(trace, "sequential", layer) == watch.seen
    assert watch.there == set()


def test_sequential_autoencoder(monkeypatch: pytest.MonkeyPatch) -> None:
    module = AutoencoderTiny()
    trace = trace_of({"vae": module}, [("vae", "encode"), ("vae", "decode")])
    watch = sequentially(monkeypatch, "vae", module)
    run(module, ["encode", "decode"], "meta")
    assert ours(trace, "sequential", layer) == watch.seen


class Whole(torch.nn.Module):  # type: ignore[misc]
    """A component that says where it is instead of moving."""

    def __init__(self, watch: Watch, name: str) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.place, self.watch, self.label = torch.device("cpu"), watch, name

    def to(self, device: Any) -> Any:
        self.place = torch.device(device)
        change = self.watch.there.discard if self.place.type == "cpu" else self.watch.there.add
        change(f"{self.label}.layer")
        return self

    def parameters(self, recurse: bool = True) -> Any:
        return iter([SimpleNamespace(device=self.place)])

    def forward(self) -> None:
        self.watch.look(f"{self.label}.layer")


SEQUENCE = ("text_encoder", "image_encoder", "transformer", "vae")
PIPELINES = {
    "text to image": ["text_encoder", "transformer", "transformer", "vae"],
    # the VAE that encodes the picture first stays on the card until the end
    "vae first": ["vae", "text_encoder", "transformer", "transformer", "vae"],
    # FLUX image to image: the prompt, then the picture
    "picture second": ["text_encoder", "vae", "transformer", "transformer", "vae"],
    # Stable Video Diffusion has no text encoder
    "picture only": ["image_encoder", "vae", "transformer", "transformer", "vae"],
    # Wan's
    "image to video": ["text_encoder", "image_encoder", "vae", "transformer", "vae"],
    # outside the sequence: stays to the end
    "controlnet": ["text_encoder", "controlnet", "transformer", "controlnet", "transformer", "vae"],
    # an encoder left out leaves its successor without a predecessor on the card
    "embeddings given": ["transformer", "vae"],
}


@pytest.mark.parametrize("name", PIPELINES)
def test_model_offload(name: str) -> None:
    calls, watch = PIPELINES[name], Watch()
    parts = [*SEQUENCE, "controlnet"]
    modules = {each: Whole(watch, each) for each in parts}
    hook = None
    for each in SEQUENCE:
        _, hook = cpu_offload_with_hook(modules[each], torch.device("cuda:0"), hook)
    cpu_offload_with_hook(modules["controlnet"], torch.device("cuda:0"))
    for each in calls:
        modules[each]()
    plain = {each: torch.nn.Sequential() for each in parts}
    for part in plain.values():
        part.add_module("layer", torch.nn.Linear(4, 4))
    trace = trace_of(plain, [(each, "forward") for each in calls], SEQUENCE)
    assert ours(trace, "model", layer) == watch.seen


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("text to image", {"text_encoder"}),  # the image encoder before the denoiser never ran
        ("vae first", {"text_encoder", "vae"}),
        ("picture second", {"text_encoder", "vae"}),
        ("picture only", {"vae"}),
        ("image to video", {"vae"}),
        ("controlnet", {"text_encoder", "controlnet"}),
        ("embeddings given", set()),
    ],
)
def test_what_lies_beside_the_denoiser_at_its_last_step(name: str, beside: set[str]) -> None:
    """By hand: only the predecessor leaves, so what was called out of turn stays."""
    modules = laid([*SEQUENCE, "controlnet"])
    calls = [(each, "forward") for each in PIPELINES[name]]
    seen = dict(ours(trace_of(modules, calls, SEQUENCE), "model", layer))
    there = {path.partition(".")[0] for path in seen["transformer.layer"]}
    assert there == beside | {"transformer"}


def test_model_offload_keeps_the_vae_that_encoded_first() -> None:
    plain = {each: torch.nn.Sequential() for each in SEQUENCE}
    for part in plain.values():
        part.add_module("layer", torch.nn.Linear(4, 4))
    calls = [(each, "forward") for each in PIPELINES["vae first"]]
    seen = dict(ours(trace_of(plain, calls, SEQUENCE), "model", layer))
    # text_encoder stays too: the transformer's predecessor is the image encoder
    assert seen["transformer.layer"] == {"vae.layer", "text_encoder.layer", "transformer.layer"}


def test_model_offload_empties_the_cache_when_something_leaves() -> None:
    modules = {name: torch.nn.Linear(1024, 1024) for name in ("text_encoder", "vae")}
    allocator = Allocator()
    placed = placement(
        trace_of(modules, [], ("text_encoder", "vae")), Settings(offload="model"), allocator
    )
    placed.on(0, "forward")
    reserved = allocator.reserved_bytes
    placed.on(1, "decode")
    assert not placed.resident(0)
    assert placed.resident(1)
    assert allocator.reserved_bytes == allocator.reserved_peak_bytes == reserved


def laid(names: Sequence[str]) -> dict[str, Any]:
    plain = {each: torch.nn.Sequential() for each in names}
    for part in plain.values():
        part.add_module("layer", torch.nn.Linear(4, 4))
    return plain


def a_pipeline(**parts: Any) -> Any:
    """A pipeline of diffusers with a sequence and an excluded component."""
    import diffusers

    class Pipe(diffusers.DiffusionPipeline):  # type: ignore[misc]
        model_cpu_offload_seq = "text_encoder->unet->vae"
        _exclude_from_cpu_offload: ClassVar[list[str]] = ["safety_checker"]
        components = parts
        config: ClassVar[dict[str, Any]] = {}

    return Pipe()


@pytest.mark.parametrize("kind", ["model", "sequential"])
def test_what_the_pipeline_excludes_is_on_the_card_from_the_first(
    monkeypatch: pytest.MonkeyPatch, kind: Offload
) -> None:
    """`enable_model_cpu_offload` and `enable_sequential_cpu_offload` of a real pipeline, with meta as the card."""
    names = ("text_encoder", "unet", "vae", "safety_checker")
    modules = laid(names)
    pipe = a_pipeline(**modules)
    moved = set()
    hooked = set()

    def to(self: Any, device: Any, **_: Any) -> Any:
        moved.add(next(n for n, m in modules.items() if m is self))
        return self

    monkeypatch.setattr(type(pipe), "to", lambda self, *_, **__: self)
    monkeypatch.setattr(torch.nn.Sequential, "to", to)
    monkeypatch.setattr("diffusers.pipelines.pipeline_utils.empty_device_cache", lambda *_: None)

    def hook(module: Any, *_: Any, **__: Any) -> Any:
        hooked.add(next(n for n, m in modules.items() if m is module))
        return module, None

    monkeypatch.setattr(accelerate, "cpu_offload_with_hook", hook)
    monkeypatch.setattr(accelerate, "cpu_offload", hook)
    enable = {"model": pipe.enable_model_cpu_offload}
    enable["sequential"] = pipe.enable_sequential_cpu_offload
    enable[kind](device="meta")
    assert moved == {"safety_checker"}
    assert hooked == {"text_encoder", "unet", "vae"}
    calls = [(each, "forward") for each in names]
    trace = replace(
        trace_of(modules, calls, ("text_encoder", "unet", "vae")), excluded=("safety_checker",)
    )
    for _, there in ours(trace, kind, layer):
        assert "safety_checker.layer" in there
    placed = placement(trace, Settings(offload=kind), Allocator())
    assert placed.waiting().pageable_bytes == 3 * 4 * (16 + 4)  # fp32 weight and bias, thrice


@pytest.mark.parametrize("old", [True, False])
def test_eight_bit_weights_stay_on_the_card_with_an_old_bitsandbytes(
    monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    """diffusers leaves them out of the chain, so what came before them is their successor's predecessor."""
    from diffusers.pipelines import pipeline_utils

    names = ("text_encoder", "unet", "vae")
    modules = laid(names)
    pipe = a_pipeline(**modules)
    chain: list[tuple[str, str | None]] = []

    def hook(module: Any, _device: Any, prev_module_hook: Any = None) -> Any:
        name = next(n for n, m in modules.items() if m is module)
        chain.append((name, prev_module_hook))
        return module, name

    monkeypatch.setattr(type(pipe), "to", lambda self, *_, **__: self)
    monkeypatch.setattr(pipeline_utils, "empty_device_cache", lambda *_: None)
    monkeypatch.setattr(accelerate, "cpu_offload_with_hook", hook)
    eight = modules["unet"]
    monkeypatch.setattr(
        pipeline_utils, "_check_bnb_status", lambda m: (m is eight, False, m is eight)
    )
    for name in ("is_transformers_version", "is_bitsandbytes_version"):
        monkeypatch.setattr(pipeline_utils, name, lambda *_: old)
    pipe.enable_model_cpu_offload(device="meta")
    trace = trace_of(modules, [(each, "forward") for each in names], names)
    settings = Settings(offload="model", quantization={"unet": "bnb-int8"})
    placed = placement(trace, settings, Allocator(), legacy_bnb=old)
    assert isinstance(placed, ModelOffload)
    numbers = {name: number for number, name in enumerate(names)}
    before = {numbers[n]: numbers[b] for n, b in chain if b is not None}
    assert placed.before == before == ({2: 0} if old else {1: 0, 2: 1})
    placed.start()
    assert placed.resident(1) == old
    four = Settings(offload="model", quantization={"unet": "bnb-nf4"})
    nf4 = placement(trace, four, Allocator(), legacy_bnb=old)
    nf4.start()
    assert not nf4.resident(1)  # 4-bit weights move


# -- block swap ----------------------------------------------------------------------------------


@pytest.mark.parametrize("offload", ["none", "model"])
def test_swapped_blocks_come_in_for_their_own_forward(offload: Offload) -> None:
    """Of 5 blocks the last 2 wait: never more than one of them is there, the rest as without."""
    modules = {"text_encoder": Norm(), "transformer": Denoiser()}
    calls = [("text_encoder", "forward"), ("transformer", "forward"), ("transformer", "forward")]
    trace = trace_of(modules, calls, tuple(modules))
    blocks = ["blocks.0", "blocks.1", "blocks.2", "single.0", "single.1"]
    for path, there in ours(trace, offload, layer, blocks_to_swap=2):
        if not path.startswith("transformer."):
            continue
        at = {block for block in blocks if f"transformer.{block}.first" in there}
        inside = {block for block in blocks[3:] if path.startswith(f"transformer.{block}.")}
        assert at == {*blocks[:3], *inside}
        assert "transformer.head" in there
        assert ("text_encoder." in there) == (offload == "none")
    placed = placement(trace, Settings(offload=offload, blocks_to_swap=2), Allocator())
    block = 4 * (4 + 4 + 16 + 4 + 16)  # table, norm, two layers, one bias
    waiting = placed.waiting().pageable_bytes
    whole = sum(part.weights_bytes for part in trace.components)
    assert waiting == (2 * block if offload == "none" else whole)


def test_more_blocks_than_there_are_cannot_be_swapped() -> None:
    trace = trace_of({"transformer": Denoiser()}, [])
    with pytest.raises(BadRequest, match="blocks_to_swap 6: transformer has 5 blocks"):
        placement(trace, Settings(blocks_to_swap=6), Allocator())
    bare = trace_of({"transformer": Norm()}, [])
    with pytest.raises(BadRequest, match=r"transformer \(Norm\) has no list of blocks"):
        placement(bare, Settings(blocks_to_swap=1), Allocator())


def test_a_sequence_names_a_component_once() -> None:
    modules = {name: Norm() for name in ("a", "b", "c")}
    placed = placement(
        trace_of(modules, [], ("a", "b", "a", "missing", "c")),
        Settings(offload="model"),
        Allocator(),
    )
    assert isinstance(placed, ModelOffload)
    assert placed.before == {1: 0, 2: 1}


def test_recasting_holds_both_copies_of_one_tensor_only() -> None:
    kib = 1024
    before = describe("vae", torch.nn.Linear(kib, kib, bias=False).half())
    after = describe("vae", torch.nn.Linear(kib, kib, bias=False))
    trace = trace_of({"vae": Norm()}, [])
    trace = replace(trace, components=(before,))
    allocator = Allocator()
    placed = placement(trace, Settings(), allocator)
    placed.start()
    assert placed.weights_bytes == 2 * kib * kib
    placed.recast(0, after)
    assert placed.weights_bytes == allocator.allocated_bytes == 4 * kib * kib
    waiting = placement(trace, Settings(offload="model"), Allocator())
    waiting.recast(0, after)  # on the host: nothing to move yet
    assert waiting.weights_bytes == 0
    waiting.on(0, "decode")
    assert waiting.weights_bytes == 4 * kib * kib
