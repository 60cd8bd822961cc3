import torch
from diffusers import FluxPipeline, FluxTransformer2DModel

base = "black-forest-labs/FLUX.1-dev"
transformer = FluxTransformer2DModel.from_pretrained(
    "someone/flux.1-dev-nf4", subfolder="transformer", torch_dtype=torch.bfloat16
)
pipe = FluxPipeline.from_pretrained(base, transformer=transformer, torch_dtype=torch.bfloat16)
pipe.enable_model_cpu_offload()

image = pipe("a glass of water on a table", num_inference_steps=50, guidance_scale=3.5).images[0]
image.save("water.png")
