"""Where weights are, against the hooks that move them: accelerate's and diffusers' own, run on CPU on tiny modules.

Both sides answer the same question at the moment each layer computes: which modules' own tensors are on the card? On
the hooks' side moving is replaced by noting, so that no GPU is needed; when what is moved is the hooks' own doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from cardfit.predict.allocator import Allocator
from cardfit.predict.placement import COPY_STREAM, GroupOffload, ModelOffload, placement
from cardfit.request import ExactRequest, Offload, Settings
from cardfit.trace.stream import Binding, Component, Event, Module, Op, Segment, Stream, Trace

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

import accelerate.hooks  # noqa: E402
from accelerate import cpu_offload, cpu_offload_with_hook  # noqa: E402
from diffusers.hooks import group_offloading  # noqa: E402

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


def ours(trace: Trace, offload: Offload, watched: Callable[[Module], bool]) -> list[Snapshot]:
    """What the placement has on the card when each watched module computes."""
    allocator = Allocator()
    placed = placement(trace, Settings(offload=offload), allocator)
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
    monkeypatch: pytest.MonkeyPatch, name: str, module: Any, kind: str, *, stream: bool
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
        low_cpu_mem_usage=False,
        num_blocks_per_group=1,
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
def test_the_first_forward_is_that_of_groups_without_stream(
    monkeypatch: pytest.MonkeyPatch, kind: str, offload: Offload
) -> None:
    module = Denoiser()
    trace = trace_of({"part": module}, [("part", "forward")])
    watch = grouped(monkeypatch, "part", module, kind, stream=False)
    run(module, ["forward"])
    assert ours(trace, offload, layer) == watch.seen


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
    trace = Trace(**{f: getattr(trace, f) for f in trace.__slots__} | {"components": (part,)})
    by_leaf = placement(trace, Settings(offload="group-leaf"), Allocator())
    assert by_leaf.host_bytes() == 4096 + 128
    by_block = placement(trace, Settings(offload="group-block"), Allocator())
    assert by_block.host_bytes() == 3100  # no block: neither streamed nor pinned


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
    trace = Trace(**{f: getattr(trace, f) for f in trace.__slots__} | {"components": (before,)})
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
