import torch
from diffusers import FluxPipeline

pipe = FluxPipeline.from_pretrained("black-forest-labs/FLUX.1-dev", torch_dtype=torch.bfloat16)
pipe.enable_model_cpu_offload()  # for less: pipe.enable_sequential_cpu_offload()

out = pipe(
    prompt="a valley in the morning",
    guidance_scale=1.5,
    height=768,
    width=1360,
    num_inference_steps=5,
).images[0]
out.save("valley.png")
