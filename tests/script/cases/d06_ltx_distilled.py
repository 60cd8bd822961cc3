import torch
from diffusers import LTXConditionPipeline, LTXLatentUpsamplePipeline
from diffusers.utils import export_to_video

pipe = LTXConditionPipeline.from_pretrained(
    "Lightricks/LTX-Video-0.9.7-distilled", torch_dtype=torch.bfloat16
)
pipe_upsample = LTXLatentUpsamplePipeline.from_pretrained(
    "Lightricks/ltxv-spatial-upscaler-0.9.7", vae=pipe.vae, torch_dtype=torch.bfloat16
)
pipe.to("cuda")
pipe_upsample.to("cuda")
pipe.vae.enable_tiling()

shared = dict(  # noqa: C408
    prompt="waves against a lighthouse",
    negative_prompt="worst quality",
    num_frames=161,
    guidance_scale=1.0,
    decode_timestep=0.05,
    decode_noise_scale=0.025,
)
HEIGHT, WIDTH = 768, 1152
height, width = int(HEIGHT * 2 / 3), int(WIDTH * 2 / 3)
latents = pipe(
    **shared,
    width=width,
    height=height,
    timesteps=[1000, 993, 987, 981, 975, 909, 725, 0.03],
    output_type="latent",
).frames
latents = pipe_upsample(latents=latents, adain_factor=1.0, output_type="latent").frames
frames = pipe(
    **shared,
    width=2 * width,
    height=2 * height,
    denoise_strength=0.999,
    timesteps=[1000, 909, 725, 421, 0],
    latents=latents,
).frames[0]
export_to_video([frame.resize((WIDTH, HEIGHT)) for frame in frames], "waves.mp4", fps=24)
