import torch
from diffusers import BitsAndBytesConfig as DiffusersBitsAndBytesConfig
from diffusers import MochiPipeline, MochiTransformer3DModel
from diffusers.utils import export_to_video
from transformers import BitsAndBytesConfig, T5EncoderModel

text_encoder = T5EncoderModel.from_pretrained(
    "genmo/mochi-1-preview",
    subfolder="text_encoder",
    quantization_config=BitsAndBytesConfig(load_in_8bit=True),
    torch_dtype=torch.float16,
)
transformer = MochiTransformer3DModel.from_pretrained(
    "genmo/mochi-1-preview",
    subfolder="transformer",
    quantization_config=DiffusersBitsAndBytesConfig(load_in_8bit=True),
    torch_dtype=torch.float16,
)
pipeline = MochiPipeline.from_pretrained(
    "genmo/mochi-1-preview",
    text_encoder=text_encoder,
    transformer=transformer,
    torch_dtype=torch.float16,
    device_map="balanced",
)
video = pipeline("a cat steps over a puddle", num_inference_steps=28, guidance_scale=3.5).frames[0]
export_to_video(video, "cat.mp4")
