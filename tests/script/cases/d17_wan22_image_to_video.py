import torch
from diffusers import AutoencoderKLWan, ModularPipeline, WanImageToVideoPipeline
from diffusers.utils import export_to_video, load_image

model_id = "Wan-AI/Wan2.2-TI2V-5B-Diffusers"
device = "cuda:1"
vae = AutoencoderKLWan.from_pretrained(model_id, subfolder="vae", torch_dtype=torch.float32)
pipe = WanImageToVideoPipeline.from_pretrained(model_id, vae=vae, torch_dtype=torch.bfloat16)
pipe.enable_model_cpu_offload(device=device)

sizer = ModularPipeline.from_pretrained("someone/wan-image-processor", trust_remote_code=True)
image = sizer(image=load_image("cat.jpg"), max_area=1280 * 704, output="processed_image")
height, width = image.height, image.width

output = pipe(
    image=image,
    prompt="the cat looks up",
    height=height,
    width=width,
    num_frames=121,
    num_inference_steps=50,
    guidance_scale=5.0,
).frames[0]
export_to_video(output, "cat.mp4", fps=24)
