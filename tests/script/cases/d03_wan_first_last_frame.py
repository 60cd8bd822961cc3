import numpy as np
import torch
import torchvision.transforms.functional as TF
from diffusers import AutoencoderKLWan, WanImageToVideoPipeline
from diffusers.utils import export_to_video, load_image
from transformers import CLIPVisionModel

repo = "Wan-AI/Wan2.1-FLF2V-14B-720P-diffusers"
eyes = CLIPVisionModel.from_pretrained(repo, subfolder="image_encoder", torch_dtype=torch.float32)
vae = AutoencoderKLWan.from_pretrained(repo, subfolder="vae", torch_dtype=torch.float32)
pipe = WanImageToVideoPipeline.from_pretrained(
    repo, vae=vae, image_encoder=eyes, torch_dtype=torch.bfloat16
)
pipe.to("cuda")

first = load_image("first.png")
last = load_image("last.png")


def fitted(picture, pipe, area=720 * 1280):
    ratio = picture.height / picture.width
    grid = pipe.vae_scale_factor_spatial * pipe.transformer.config.patch_size[1]
    height = round(np.sqrt(area * ratio)) // grid * grid
    width = round(np.sqrt(area / ratio)) // grid * grid
    return picture.resize((width, height)), height, width


def cropped(picture, height, width):
    factor = max(width / picture.width, height / picture.height)
    picture = picture.resize((round(picture.width * factor), round(picture.height * factor)))
    return TF.center_crop(picture, [height, width]), height, width


first, height, width = fitted(first, pipe)
if last.size != first.size:
    last, _, _ = cropped(last, height, width)

clip = pipe(
    image=first,
    last_image=last,
    prompt="the bird takes off from the branch",
    height=height,
    width=width,
    guidance_scale=5.5,
).frames[0]
export_to_video(clip, "bird.mp4", fps=16)
