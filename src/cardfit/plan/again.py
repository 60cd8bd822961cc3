"""The command that asks for a request again, with the settings of a row where they are given.

In: a `Request` after its rules, `Settings`. Out: the words of a command line.
"""

from __future__ import annotations

from cardfit.request import ExactRequest, Settings


def command(request: ExactRequest, settings: Settings | None = None) -> list[str]:
    """The words of a command that asks for ``request`` again, in ``settings``."""
    words = ["cardfit", "plan", request.model]
    words += ["--width", str(request.width), "--height", str(request.height)]
    if request.num_frames > 1:
        words += ["--num-frames", str(request.num_frames)]
    if request.batch > 1:
        words += ["--batch", str(request.batch)]
    words += ["--steps", str(request.num_inference_steps)]
    return words if settings is None else words + flags(settings)


def flags(settings: Settings) -> list[str]:
    """The flags that set every knob of ``settings`` that is not left open.

    >>> flags(Settings(offload="model", vae_tiling=False, quantization={"unet": "bnb-int8"}))
    ['--quantization', 'unet=bnb-int8', '--offload', 'model', '--no-vae-tiling']
    """
    found = []
    for name, value in settings.model_dump(mode="json", exclude_defaults=True).items():
        flag = name.replace("_", "-")
        if isinstance(value, dict):
            given = [each if key == "*" else f"{key}={each}" for key, each in value.items()]
            found += [word for each in given for word in (f"--{flag}", each)]
        elif isinstance(value, bool):
            found.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            found += [f"--{flag}", str(value)]
    return found
