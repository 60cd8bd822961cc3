import torch
from diffusers import AutoModel, LTXPipeline
from diffusers.hooks import apply_group_offloading
from diffusers.utils import export_to_video

transformer = AutoModel.from_pretrained(
    "Lightricks/LTX-Video", subfolder="transformer", dtype=torch.bfloat16
)
transformer.enable_layerwise_casting(
    storage_dtype=torch.float8_e4m3fn, compute_dtype=torch.bfloat16
)
pipeline = LTXPipeline.from_pretrained(
    "Lightricks/LTX-Video", transformer=transformer, dtype=torch.bfloat16
)

onload, offload = torch.device("cuda"), torch.device("cpu")
pipeline.transformer.enable_group_offload(
    onload_device=onload, offload_device=offload, offload_type="leaf_level", use_stream=True
)
apply_group_offloading(
    pipeline.text_encoder, onload_device=onload, offload_type="block_level", num_blocks_per_group=2
)
apply_group_offloading(pipeline.vae, onload_device=onload, offload_type="leaf_level")

video = pipeline(
    prompt="a potter at the wheel, close up",
    negative_prompt="worst quality",
    width=768,
    height=512,
    num_frames=161,
    decode_timestep=0.03,
    decode_noise_scale=0.025,
    num_inference_steps=50,
).frames[0]
export_to_video(video, "potter.mp4", fps=24)
