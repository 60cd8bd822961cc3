"""The dispatch mode that watches a pipeline run without data and writes down what it would do to a card's memory.

Between components the pipeline's own operations run on CPU (small tensors for real, large ones as stand-ins). Inside a
component tensors are on meta; small masks and indices stay real, so that lengths and switches are the pipeline's own.
Every new storage is a birth, a weak reference notes its death. A call seen before is replayed, not run again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cardfit.trace import attention as sdpa
from cardfit.trace import kernels
from cardfit.trace.frame import Frame, Known, Slot
from cardfit.trace.fused import Functions, Fused
from cardfit.trace.ops import fixed_answer, flat, grows, lists, mask_to_places
from cardfit.trace.shapes import ShapeMemo
from cardfit.trace.standins import LARGE, elements_asked, meta_storage, on_meta, stand_in, zeros
from cardfit.trace.stream import Binding, Op, Stream, Work
from cardfit.trace.values import is_real, map_tensors, signature, tensors

_FACTORIES = {
    "empty", "zeros", "ones", "full", "rand", "randn", "randint", "arange", "new_zeros", "new_empty", "new_ones",
    "new_full", "empty_strided", "new_empty_strided",
}  # fmt: skip
_INDEXED = {"index", "index_put", "index_put_", "_unsafe_index"}
# elements of a tensor between the components; what is done to larger ones is looked at by shape only
BETWEEN = LARGE
_META = torch.device("meta")
_CPU = torch.device("cpu")


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage:
    return tensor.untyped_storage()


def _key(tensor: torch.Tensor) -> int:
    return int(_storage(tensor)._cdata)


class Recorder(Fused, TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes the timeline and the streams of one pipeline call."""

    def __init__(
        self,
        *,
        attention: str = "sdpa",
        fused_rms_norm: bool = True,
        flash_on: dict[int, str] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.timeline = Frame(-1, "timeline")
        self.frames = [self.timeline]
        self.streams: list[Stream] = []
        self.sites: dict[tuple[str, str], int] = {("", ""): 0}
        self.known: dict[Any, Known] = {}
        self.module_index: dict[int, tuple[int, str]] = {}  # id(module) -> (index, path)
        self.path: list[str] = []
        self.inside = False
        self.paused = False
        self.away = False
        self.experts = 1  # of the mixture-of-experts layer that runs now
        self.attention_rule = attention
        self.flash_on = flash_on if flash_on is not None else {}  # component -> name
        self.within_attention = False
        self.more_without_flash_bytes = 0  # in one call, on cards before Ampere
        self.fused_rms_norm = fused_rms_norm
        self._functions = Functions(self)
        self._shapes = ShapeMemo()
        self._live: dict[int, tuple[Frame, int, weakref.ref[Any]]] = {}

    # -- storages ------------------------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        """The stream being written now."""
        return self.frames[-1]

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Our own tensor handling inside the block is not the pipeline's."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """What happens inside the block happens on another card: nothing of it is booked."""
        frames, known, streams = self.frames, self.known, len(self.streams)
        self.frames, self.known, self.away = [Frame(-1, "elsewhere")], {}, True
        try:
            yield
        finally:
            self.frames, self.known, self.away = frames, known, False
            del self.streams[streams:]
            late = self.frame.late_deaths
            self.frame.events.extend((Op.DEATH, identity, 0, 0) for identity in late)
            late.clear()

    def handed_in(self, value: Any, op: str) -> None:
        """Book the tensors in ``value``, made elsewhere, as held on this card from now on."""
        for tensor in tensors(value):
            entry = self._live.get(_key(tensor))
            if entry is not None and entry[0] is not self.frame:
                del self._live[_key(tensor)]
            self._births(tensor, op)

    def _site(self, op: str) -> int:
        name = sdpa.SITES["math"] if self.within_attention else op
        return self.sites.setdefault((name, self.path[-1] if self.path else ""), len(self.sites))

    def _register(self, storage: torch.UntypedStorage, frame: Frame, identity: int) -> None:
        key = storage._cdata

        def died(_: Any, key: int = key) -> None:
            self._died(key)

        self._live[key] = (frame, identity, weakref.ref(storage, died))

    def _died(self, key: int) -> None:
        entry = self._live.pop(key, None)
        if entry is None:
            return
        owner, identity, _ = entry
        now = self.frame
        if owner is now:
            now.events.append((Op.DEATH, identity, 0, 0))
        elif key in now.input_ids:
            given = now.input_ids.pop(key)  # the address may be another storage's next
            now.events.append((Op.DEATH, given, 0, 0))
            now.killed.add(given)
        else:
            owner.late_deaths.append(identity)

    def _births(self, out: Any, op: str) -> int:
        """Book every storage of ``out`` that is new; return the bytes of its tensors."""
        total = 0
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if not isinstance(tensor, torch.Tensor):
                continue
            total += kernels.tensor_bytes(tensor)
            storage = _storage(tensor)
            key = storage._cdata
            if key in self._live or key in self.frame.input_ids or storage.nbytes() == 0:
                continue
            identity = self.frame.new_id(storage.nbytes())
            self._register(storage, self.frame, identity)
            self.frame.events.append((Op.BIRTH, identity, storage.nbytes(), self._site(op)))
        return total

    # -- dispatch ------------------------------------------------------------------------------------------------

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        if self.inside:
            return self._component_op(func, args, kwargs)
        return self._pipeline_op(func, args, kwargs)

    def _pipeline_op(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = func._overloadpacket.__name__
        if name in _INDEXED:
            args = mask_to_places(args)
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "meta":
            kwargs = {**kwargs, "device": _CPU}
        found = flat(args, kwargs)
        large = any(t.numel() > BETWEEN or t.device.type == "meta" for t in found)
        if not large and name in _FACTORIES:
            large = elements_asked(args) > BETWEEN
        if not large or name == "_local_scalar_dense":
            out = func(*args, **kwargs)
            if not func.is_view:
                self._births(out, name)
            return out
        return self._shape_only(func, name, args, kwargs)

    def _shape_only(
        self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A large operation of the pipeline: sizes as in the real run, data never touched."""
        if func._schema.is_mutable:
            self._births(args[0], name)  # a tensor made outside torch is seen here first
            return args[0]
        any_meta = any(t.device.type == "meta" for t in tensors((args, kwargs)))
        if (func.is_view or name == "_unsafe_view") and not any_meta:  # both share the storage
            return func(*args, **kwargs)
        meta_args, meta_kwargs = map_tensors((args, kwargs), on_meta, depth=4)
        if "device" in meta_kwargs:
            meta_kwargs["device"] = _META
        out = func(*meta_args, **meta_kwargs)

        def real(meta: torch.Tensor) -> torch.Tensor:
            return stand_in(meta, zeros(_storage(meta).nbytes()))

        result = map_tensors(out, real)
        self._births(result, name)
        return result

    def _component_op(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func.is_view and args[0].device.type == "meta":
            return func(*args, **kwargs)
        name = func._overloadpacket.__name__
        if name in _INDEXED:
            args = mask_to_places(args)
        found = flat(args, kwargs)
        on_device = [t for t in found if t.device.type == "meta"]
        if name in ("_local_scalar_dense", "is_nonzero") and on_device:
            return fixed_answer(on_device[0])
        mixed = bool(on_device) and len(on_device) < len(found)
        if mixed or (
            not on_device and (any(t.numel() > LARGE for t in found) or grows(name, args))
        ):
            args, kwargs = map_tensors((args, kwargs), self._moved, depth=4)
            if kwargs.get("device") is not None:
                kwargs = {**kwargs, "device": _META}
        if name in ("nonzero", "masked_select") and on_device:
            return self._all_selected(name, args)
        if name == "bincount" and on_device:
            return self._even_shares(args[0])
        out = self._shapes.run(func, args, kwargs)
        if not func.is_view:  # a view of a weight is no birth
            nbytes = self._births(out, name) + sum(kernels.tensor_bytes(t) for t in found)
            self._count(name, args, out, nbytes)
        return out

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        """A small real tensor that meets meta ones; it is on the card already, so nothing is born."""
        if tensor.device.type == "meta":
            return tensor
        meta = on_meta(tensor)
        key = _key(tensor)
        entry = self._live.get(key)
        known = self.frame.input_ids.get(key)
        identity = (
            known if known is not None else (entry[1] if entry and entry[0] is self.frame else -1)
        )
        self._alias(meta, identity)
        return meta

    def _alias(self, meta: torch.Tensor, identity: int) -> None:
        """``meta`` stands for storage ``identity``: no birth, and its own death says nothing."""
        storage = _storage(meta)
        key = storage._cdata
        frame = self.frame
        frame.input_ids[key] = identity
        weakref.finalize(storage, frame.input_ids.pop, key, None)

    def _all_selected(self, name: str, args: tuple[Any, ...]) -> torch.Tensor:
        """Selections by the contents of a mask on meta take every element."""
        source = args[0]
        if name == "nonzero":
            out = torch.empty(source.numel(), source.dim(), dtype=torch.int64, device=_META)
        else:
            out = torch.empty(source.numel(), dtype=source.dtype, device=_META)
        self._births(out, name)
        return out

    def _even_shares(self, choices: torch.Tensor) -> torch.Tensor:
        """Experts chosen by data on meta are taken to get equal shares; how many there are, the module says."""
        share, rest = divmod(choices.numel(), self.experts)
        return torch.tensor([share + (n < rest) for n in range(self.experts)])

    def _count(self, name: str, args: tuple[Any, ...], out: Any, nbytes: int) -> None:
        frame = self.frame
        first = out[0] if isinstance(out, (tuple, list)) and out else out
        dtype = kernels.dtype_class(first) if isinstance(first, torch.Tensor) else "other"
        if name in kernels.MATMULS:
            if not frame.has_matmul:
                frame.has_matmul = True
                frame.events.append((Op.MATMUL, 0, 0, 0))
            kind = "attention" if self.within_attention else "matmul"
            frame.add_work(kind, dtype, kernels.matmul_flop(name, args), nbytes)
        elif name in kernels.CONVOLUTIONS:
            source, weight = args[0], args[1]
            workspace = kernels.convolution_workspace_bytes(source, weight, out)
            frame.events.append((Op.WORKSPACE, 0, workspace, self._site(name)))
            flop = kernels.convolution_flop(weight, source, out, bool(args[6]))
            frame.add_work("convolution", dtype, flop, nbytes)
        else:
            kind = "attention" if self.within_attention else "elementwise"
            frame.add_work(kind, dtype, 0.0, nbytes)

    # -- calls -----------------------------------------------------------------------------------------------------

    def component_call(
        self,
        component: int,
        method: str,
        version: int,
        call: Callable[..., Any],
        args: Any,
        kwargs: Any,
    ) -> Any:
        """Run or replay one call of a component from the pipeline; CPU stand-ins come back."""
        with self.pause():
            name = (component, method, version, signature((args, kwargs), LARGE))
            given = tensors((args, kwargs))
        known = self.known.get(name)
        if known is None:
            known = self._trace_component(component, method, str(name[3]), call, args, kwargs)
            self.known[name] = known
        return self._replay(known, given, [], on_meta=False)

    def _trace_component(
        self,
        component: int,
        method: str,
        label: str,
        call: Callable[..., Any],
        args: Any,
        kwargs: Any,
    ) -> Known:
        frame = Frame(component, method)

        def enter(tensor: torch.Tensor) -> torch.Tensor:
            identity = frame.new_id(0)
            if is_real(tensor, LARGE):
                frame.input_ids[_key(tensor)] = identity
                return tensor
            meta = on_meta(tensor)
            self._alias(meta, identity)
            return meta

        outer_path = self.path
        self.frames.append(frame)
        try:
            with self.pause():
                meta_args, meta_kwargs = map_tensors((args, kwargs), enter)
            inputs = frame.next_id
            self.inside, self.path = True, [""]
            frame.events.append((Op.ENTER, 0, 0, 0))
            with self._functions:
                result = call(*meta_args, **meta_kwargs)
            frame.events.append((Op.EXIT, 0, 0, 0))
            del meta_args, meta_kwargs
        finally:
            self.inside, self.path = False, outer_path
            self.frames.pop()
        survivors = self._survivors(frame)
        known = self._finish(frame, inputs, result, [], label, survivors)
        for _, key in survivors:  # the stand-ins take over
            self._live.pop(key, None)
        return known

    def nested_call(
        self, component: int, name: str, call: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """Run or replay a part of a component (a VAE's decoder on one tile); tensors on meta come back.

        Lists among the arguments may be changed by the call, as a causal VAE's feature cache is.
        """
        with self.pause():
            label = (component, name, signature((args, kwargs), LARGE))
            given = tensors((args, kwargs))
        changeable = lists((args, kwargs))
        known = self.known.get(label)
        if known is not None:
            return self._replay(known, given, changeable, on_meta=True)
        frame = Frame(component, name)
        outer = self._ids_of(given)
        for tensor in given:
            frame.input_ids[_key(tensor)] = frame.new_id(0)
        inputs = frame.next_id
        del given, tensor  # what the call replaces in a list must be able to die
        self.frames.append(frame)
        try:
            result = call(*args, **kwargs)
        finally:
            self.frames.pop()
        survivors = self._survivors(frame)
        known = self._finish(frame, inputs, result, changeable, str(label[2]), survivors)
        self.known[label] = known
        ids = [self.frame.new_id(nbytes) for nbytes in known.output_bytes]
        for identity, (_, key) in zip(ids, survivors, strict=True):
            self._live[key] = (self.frame, identity, self._live[key][2])
        self._write_call(known, outer, ids)
        return result

    def _ids_of(self, given: list[torch.Tensor]) -> tuple[int, ...]:
        """The ids that the current stream knows the tensors' storages by; -1 for storages it does not own."""
        out = []
        for tensor in given:
            entry = self._live.get(_key(tensor))
            out.append(entry[1] if entry is not None and entry[0] is self.frame else -1)
        return tuple(out)

    def _write_call(self, known: Known, inputs: tuple[int, ...], outputs: list[int]) -> None:
        frame = self.frame
        frame.bindings.append(Binding(inputs if known.killed else (), tuple(outputs)))
        frame.events.append((Op.CALL, known.stream, len(frame.bindings) - 1, 0))
        frame.events.extend((Op.DEATH, identity, 0, 0) for identity in frame.late_deaths)
        frame.late_deaths.clear()
        if frame is not self.timeline:
            for work in self.streams[known.stream].work:
                frame.add_work(work.kind, work.dtype, work.flop, work.bytes, work.launches)

    def _survivors(self, frame: Frame) -> list[tuple[int, int]]:
        """Storages born in ``frame`` that are alive: ``(id, storage key)`` in order of birth."""
        return sorted((e[1], k) for k, e in self._live.items() if e[0] is frame)

    def _finish(
        self,
        frame: Frame,
        inputs: int,
        result: Any,
        changeable: list[list[Any]],
        label: str,
        survivors: list[tuple[int, int]],
    ) -> Known:
        """Close ``frame``: what is still alive outlives the call."""
        index_of = {key: n for n, (_, key) in enumerate(survivors)}
        real_inputs = dict(frame.input_ids)

        def slot(tensor: torch.Tensor) -> Slot:
            key = _key(tensor)
            keep = tensor.clone() if tensor.device.type == "cpu" else None
            shape = on_meta(tensor, with_offset=True)
            if key in index_of:
                return Slot(index_of[key], False, shape, keep)
            if 0 <= real_inputs.get(key, -1) < inputs:
                return Slot(real_inputs[key], True, shape, None)
            return Slot(-1, False, None, tensor)

        with self.pause():
            template = map_tensors((result, changeable), slot)
        stream = Stream(
            component=frame.component,
            method=frame.method,
            signature=label[:500],
            inputs=inputs,
            events=tuple(frame.events),
            outputs=tuple(identity for identity, _ in survivors),
            bindings=tuple(frame.bindings),
            work=tuple(
                Work(k, d, w[0], w[1], int(w[2])) for (k, d), w in sorted(frame.work.items())
            ),
        )
        self.streams.append(stream)
        sizes = tuple(frame.sizes[identity] for identity, _ in survivors)
        return Known(len(self.streams) - 1, template, sizes, frozenset(frame.killed))

    def _replay(
        self,
        known: Known,
        given: list[torch.Tensor],
        changeable: list[list[Any]],
        *,
        on_meta: bool,
    ) -> Any:
        """Write the call into the owner's stream and hand back fresh tensors for its outputs."""
        frame = self.frame
        outer = self._ids_of(given)
        ids = [frame.new_id(nbytes) for nbytes in known.output_bytes]
        for index in known.killed:  # the call itself says that they died
            self._live.pop(_key(given[index]), None)
        self._write_call(known, outer, ids)
        made: dict[int, torch.UntypedStorage] = {}

        def fill(slot: Slot) -> torch.Tensor | None:
            if slot.index < 0:
                return slot.value
            if slot.shape is None:
                raise AssertionError("a slot over a storage has a shape")
            if slot.of_input:
                return stand_in(slot.shape, _storage(given[slot.index]))
            if slot.value is not None:
                out = slot.value.clone()
                made[slot.index] = _storage(out)
                return out
            if slot.index not in made:
                nbytes = known.output_bytes[slot.index]
                made[slot.index] = meta_storage(nbytes) if on_meta else zeros(nbytes)
            return stand_in(slot.shape, made[slot.index])

        with self.pause():
            result, contents = map_tensors(known.result, fill, kind=Slot)
        for target, content in zip(changeable, contents, strict=True):
            target[:] = content
        for index, identity in enumerate(ids):
            storage = made.get(index)
            if storage is None:  # nobody holds it: gone with the call
                frame.events.append((Op.DEATH, identity, 0, 0))
            else:
                self._register(storage, frame, identity)
        return result
