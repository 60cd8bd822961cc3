"""What loading holds: on the card while weights arrive and are quantized there, and on the host beside the files.

In: a placement before its first call. Out: weights on the card as the printed lines leave them, with every moment
reported on the way. ``from_pretrained`` builds components one after another on the host, but bitsandbytes on the card:
there a weight arrives in half precision and goes when it is quantized. Other quantizers, casting and GGUF work on the
host, and ``.to("cuda")`` moves what they made; offload hooks first send everything back and empty the cache. torchao's
``quantize_``, called on a component that lies on the card, has all of it there before the first layer shrinks. Left
out: the order of components, which differs from run to run (the largest weight comes last here).
Source: diffusers 0.42.1 (pipeline_utils, model_loading_utils, quantizers), transformers 5.24 (modeling_utils).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cardfit.predict.allocator import Block
from cardfit.predict.offload import Placement
from cardfit.predict.schemes import SCHEMES
from cardfit.predict.weights import InPlace, ModuleWeights, module_weights
from cardfit.trace.stream import Component
from cardfit.units import GIB

DIFFUSERS_WARM_UP = (
    4  # a quantized model's elements by this, in its dtype (get_cuda_warm_up_factor)
)
# transformers warms up again only where more than this is missing from what is reserved and unused
TRANSFORMERS_LEAST_BYTES = 3 * GIB // 2
_ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_HALF_BITS = {"bnb-int8": 8, "bnb-nf4": 4}


@dataclass(slots=True)
class Loading:
    """One loading under way; ``component`` and ``module`` say what is arriving."""

    placement: Placement
    note: Callable[[], None]
    component: int = 0
    module: int = 0

    def run(self) -> None:
        """Everything up to the first call: what arrives quantized, then what is moved to stay."""
        arriving = [n for n, _ in enumerate(self.placement.current) if self.arrives_quantized(n)]
        for number in sorted(arriving, key=self._largest):
            self._warm_up(number)
            self._arrive(number)
        self._move(arriving)
        self.placement.start()
        if self.placement.held:
            self.component, module = next(reversed(self.placement.held))
            self.module = module if module >= 0 else -1 - module  # a tensor that no hook moves
            self.note()

    def arrives_quantized(self, number: int) -> bool:
        """Whether ``from_pretrained`` quantizes this component on the card."""
        scheme = SCHEMES.get(self._scheme(number))
        return scheme is not None and scheme.on_card

    def where(self) -> tuple[str, str]:
        """The component that is arriving and the module in it, for a reader."""
        component = self.placement.current[self.component]
        return component.name, component.modules[self.module].path or component.kind

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _move(self, arrived: list[int]) -> None:
        """``.to("cuda")``, or hooks: with those the card is emptied first."""
        placement = self.placement
        if (placement.settings.offload or "none") != "none":
            for number in arrived:
                placement.unload_all(number)
            placement.allocator.empty_cache()
            return
        for number, component in enumerate(placement.current):
            if number in arrived:
                for module in placement.swapped[number]:
                    placement.unload(number, module)
            elif isinstance(component, InPlace):
                self._whole(number)
            else:
                for module, weights in enumerate(placement.weights[number]):
                    if module not in placement.swapped[number]:
                        self._one(number, module, weights, weights.arriving_bytes)
        for number, component in enumerate(placement.current):
            if isinstance(component, InPlace):
                self._shrink(number)

    def _arrive(self, number: int) -> None:
        """Tensor by tensor; a weight that is quantized is there in half precision until that is done."""
        for module, weights in enumerate(self.placement.weights[number]):
            self._one(number, module, weights, weights.half_bytes)

    def _one(self, number: int, module: int, weights: ModuleWeights, beside_bytes: int) -> None:
        """One module comes to the card with ``beside_bytes`` that go when it is there."""
        self.component, self.module = number, module
        allocator = self.placement.allocator
        beside = allocator.allocate(beside_bytes) if beside_bytes else None
        self.placement.load(number, module)
        self.note()
        if beside is not None:
            allocator.free(beside)

    def _whole(self, number: int) -> None:
        """A component as it was before its quantizer is called on it."""
        placement = self.placement
        component = placement.current[number]
        for module, weights in enumerate(module_weights(component)):
            self.component, self.module = number, module
            blocks = [placement.allocator.allocate(size) for size in weights.tensors if size]
            placement.weights_bytes += sum(block.size for block in blocks)
            if blocks:
                placement.held[number, module] = blocks
            self.note()

    def _shrink(self, number: int) -> None:
        """``quantize_``: layer by layer the new weight is made beside the old one."""
        placement = self.placement
        component = placement.current[number]
        for module, weights in enumerate(placement.weights[number]):
            if not weights.half_bytes:
                continue
            self.component, self.module = number, module
            names = [name for name, size, _ in component.modules[module].tensors if size]
            old = placement.held[number, module]
            gone = old[names.index("weight")]
            kept = [block for block in old if block is not gone]
            placement.held[number, module] = [
                *self._made(weights, len(weights.tensors) - len(kept), gone),
                *kept,
            ]
            self.note()

    def _made(self, weights: ModuleWeights, count: int, old: Block) -> list[Block]:
        """The first ``count`` tensors of a layer in place of ``old``."""
        placement = self.placement
        work = (
            placement.allocator.allocate(weights.quantizing_bytes)
            if weights.quantizing_bytes
            else None
        )
        made = [placement.allocator.allocate(size) for size in weights.tensors[:count]]
        placement.weights_bytes += sum(block.size for block in made)
        self.note()
        for block in (work, old):
            if block is not None:
                placement.allocator.free(block)
        placement.weights_bytes -= old.size
        return made

    # -- what is asked for at once -------------------------------------------------------------------------------------

    def _warm_up(self, number: int) -> None:
        """The loader asks for a large piece at once and lets it go into the cache, to be filled tensor by tensor."""
        self.component, self.module = number, 0
        allocator = self.placement.allocator
        size = warm_up_bytes(
            self.placement.current[number],
            self._scheme(number),
            allocator.reserved_bytes - allocator.allocated_bytes,
        )
        if size:
            allocator.free(allocator.allocate(size))

    def _scheme(self, number: int) -> str:
        placement = self.placement
        return placement.schemes.get(placement.current[number].name, "none")

    def _largest(self, number: int) -> int:
        return max((w.half_bytes for w in self.placement.weights[number]), default=0)


def of_transformers(component: Component) -> bool:
    """Whether transformers loads this component, by the pipeline's names for encoders."""
    return component.name.startswith(("text_encoder", "image_encoder", "mllm", "prompt_enhancer"))


def warm_up_bytes(component: Component, scheme: str, unused_bytes: int) -> int:
    """Bytes that a loader asks for before it loads ``component`` to the card.

    ``unused_bytes`` are reserved and free already: transformers asks for what is missing, diffusers for the whole.
    """
    tensors = [each for module in component.modules for each in module.tensors]
    if not of_transformers(component):
        count = sum(size // _ITEM_BYTES.get(dtype, 1) for _, size, dtype in tensors)
        return count // DIFFUSERS_WARM_UP * _ITEM_BYTES.get(component.dtype, 2)
    bits = _HALF_BITS.get(scheme, 16)
    plain = module_weights(component)
    total = 0
    for before, after in zip(plain, module_weights(component, scheme), strict=True):
        total += sum(before.tensors) - after.half_bytes + after.half_bytes * bits // 16
    if total - unused_bytes > unused_bytes:
        return total - unused_bytes
    return unused_bytes + 1 if total - unused_bytes > TRANSFORMERS_LEAST_BYTES else 0


def load_host_bytes(
    component: Component, scheme: str = "none", published: str | None = None
) -> int:
    """Host RAM of its own that loading ``component`` takes at its worst, beside pages of one file that are mapped.

    A tensor whose dtype stays is a view of the file. What is cast or quantized on the host is built anew, one tensor at
    a time beside its source in half precision; bitsandbytes leaves only the tensor that is on its way to the card.
    ``published`` is the dtype of the files, as `cardfit.predict.host` takes it.
    """
    cast = published is not None and published != component.dtype
    stored = SCHEMES.get(scheme)
    weights = module_weights(component, scheme)
    largest = max((w.half_bytes for w in weights), default=0)
    if stored is not None and stored.on_card:
        return largest if cast else 0
    if scheme == "none":
        return component.weights_bytes if cast else 0
    made = sum(sum(w.tensors) for w in weights)
    if scheme.startswith(("gguf", "svdq")):
        return 0  # the file holds what is loaded
    return made + (largest if cast else 0) + max((w.quantizing_bytes for w in weights), default=0)
