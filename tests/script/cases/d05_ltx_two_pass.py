import torch
from diffusers import LTXConditionPipeline, LTXLatentUpsamplePipeline
from diffusers.pipelines.ltx.pipeline_ltx_condition import LTXVideoCondition
from diffusers.utils import export_to_video, load_video

pipeline = LTXConditionPipeline.from_pretrained(
    "Lightricks/LTX-Video-0.9.7-dev", torch_dtype=torch.bfloat16
)
upsampler = LTXLatentUpsamplePipeline.from_pretrained(
    "Lightricks/ltxv-spatial-upscaler-0.9.7", vae=pipeline.vae, torch_dtype=torch.bfloat16
)
pipeline.to("cuda")
upsampler.to("cuda")
pipeline.vae.enable_tiling()


def on_grid(height, width):
    height = height - (height % pipeline.vae_temporal_compression_ratio)
    width = width - (width % pipeline.vae_temporal_compression_ratio)
    return height, width


video = load_video("start.mp4")[:21]
condition = LTXVideoCondition(video=video, frame_index=0)
prompt = "a street at night after rain"
expected_height, expected_width = 768, 1152
factor = 2 / 3
num_frames = 161

# small first
small_height, small_width = int(expected_height * factor), int(expected_width * factor)
small_height, small_width = on_grid(small_height, small_width)
latents = pipeline(
    conditions=[condition],
    prompt=prompt,
    negative_prompt="worst quality",
    width=small_width,
    height=small_height,
    num_frames=num_frames,
    num_inference_steps=30,
    decode_timestep=0.05,
    decode_noise_scale=0.025,
    image_cond_noise_scale=0.0,
    guidance_scale=5.0,
    guidance_rescale=0.7,
    generator=torch.Generator().manual_seed(0),
    output_type="latent",
).frames

# twice the size
large_height, large_width = small_height * 2, small_width * 2
larger = upsampler(latents=latents, output_type="latent").frames

# a few more steps
video = pipeline(
    conditions=[condition],
    prompt=prompt,
    negative_prompt="worst quality",
    width=large_width,
    height=large_height,
    num_frames=num_frames,
    denoise_strength=0.4,
    num_inference_steps=10,
    latents=larger,
    decode_timestep=0.05,
    decode_noise_scale=0.025,
    image_cond_noise_scale=0.0,
    guidance_scale=5.0,
    guidance_rescale=0.7,
    generator=torch.Generator().manual_seed(0),
    output_type="pil",
).frames[0]

video = [frame.resize((expected_width, expected_height)) for frame in video]
export_to_video(video, "street.mp4", fps=24)
