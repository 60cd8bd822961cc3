import torch
from diffusers import StableDiffusionPipeline

pipe = StableDiffusionPipeline.from_pretrained(
    "stabilityai/stable-diffusion-2-1", torch_dtype=torch.float16
)
pipe = pipe.to("cuda")
pipe.enable_vae_tiling()
pipe.enable_xformers_memory_efficient_attention()

image = pipe(["a wide harbour, many boats"], width=3840, height=2224).images[0]
image.save("harbour.png")
