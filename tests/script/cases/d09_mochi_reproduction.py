import torch
from diffusers import MochiPipeline
from diffusers.utils import export_to_video
from diffusers.video_processor import VideoProcessor
from torch.nn.attention import SDPBackend, sdpa_kernel

pipe = MochiPipeline.from_pretrained("genmo/mochi-1-preview", force_zeros_for_empty_prompt=True)
pipe.vae.enable_tiling()
pipe.enable_model_cpu_offload()
pipe.transformer.to(dtype=torch.bfloat16)

with torch.no_grad():
    prompt_embeds, mask, negative_embeds, negative_mask = pipe.encode_prompt(
        prompt="a kettle boils over", max_sequence_length=256
    )

with torch.autocast("cuda", torch.bfloat16):  # noqa: SIM117
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        latents = pipe(
            prompt_embeds=prompt_embeds,
            prompt_attention_mask=mask,
            negative_prompt_embeds=negative_embeds,
            negative_prompt_attention_mask=negative_mask,
            guidance_scale=4.5,
            num_inference_steps=64,
            height=480,
            width=848,
            num_frames=163,
            generator=torch.Generator("cuda").manual_seed(0),
            output_type="latent",
            return_dict=False,
        )[0]

processor = VideoProcessor(vae_scale_factor=8)
video = pipe.vae.decode(latents.float(), return_dict=False)[0]
export_to_video(processor.postprocess_video(video)[0], "kettle.mp4", fps=30)
