import torch
from diffusers import MochiPipeline, MochiTransformer3DModel
from diffusers.utils import export_to_video

repo = "genmo/mochi-1-preview"
transformer = MochiTransformer3DModel.from_pretrained(
    repo, subfolder="transformer", device_map="auto", max_memory={0: "24GB", 1: "24GB"}
)
pipe = MochiPipeline.from_pretrained(repo, transformer=transformer)
pipe.enable_model_cpu_offload()
pipe.enable_vae_tiling()

with torch.autocast(device_type="cuda", dtype=torch.bfloat16, cache_enabled=False):
    frames = pipe(
        prompt="a train through a tunnel",
        negative_prompt="",
        height=480,
        width=848,
        num_frames=85,
        num_inference_steps=50,
        guidance_scale=4.5,
        num_videos_per_prompt=1,
        generator=torch.Generator(device="cuda").manual_seed(0),
        max_sequence_length=256,
        output_type="pil",
    ).frames[0]
export_to_video(frames, "train.mp4", fps=30)
