import time

import torch
from diffusers import Flux2Pipeline

pipe = Flux2Pipeline.from_pretrained("black-forest-labs/FLUX.2-dev", torch_dtype=torch.bfloat16)
pipe.enable_model_cpu_offload()

arguments = {
    "prompt": "a lighthouse in fog",
    "height": 1024,
    "width": 1024,
    "guidance_scale": 4.0,
    "max_sequence_length": 512,
}
pipe(num_inference_steps=3, generator=torch.Generator("cuda").manual_seed(1), **arguments)

torch.cuda.synchronize()
began = time.perf_counter()
image = pipe(
    num_inference_steps=50, generator=torch.Generator("cuda").manual_seed(42), **arguments
).images[0]
print(f"{time.perf_counter() - began:.1f} s")
image.save("lighthouse.png")
