# ruff: noqa: E501 (lines stand as they are printed)
"""Texts as people paste them: numbers, stage and cause of each."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cardfit.autopsy import diagnose, read
from cardfit.units import GIB, MIB

_spec = importlib.util.spec_from_file_location("texts", Path(__file__).with_name("texts.py"))
t = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(t)


def g(number: float) -> int:
    return round(number * GIB)


def m(number: float) -> int:
    return round(number * MIB)


FULL = t.new("1.50 GiB", "23.64 GiB", "319.00 MiB", "23.32 GiB", "22.41 GiB", "402.10 MiB")
LOADED = t.new("90.00 MiB", "14.74 GiB", "24.12 MiB", "14.71 GiB", "14.60 GiB", "12.00 MiB")
CONV = t.frame(t.SITE + "torch/nn/modules/conv.py", "_conv_forward", "return F.conv3d(")
SDPA = t.frame(
    t.SITE + "diffusers/models/attention_processor.py",
    "__call__",
    "hidden_states = F.scaled_dot_product_attention(",
)
HOOK = t.frame(t.SITE + "accelerate/hooks.py", "pre_forward", "self.hook.pre_forward(module)")
VAE = t.SITE + "diffusers/models/autoencoders/autoencoder_kl_wan.py"
DIT = t.SITE + "diffusers/models/transformers/transformer_wan.py"

# name -> (text, stage, cause, numbers)
CASES = {
    "diffusers decode": (
        t.diffusers(
            t.frame(VAE, "decode", "decoded = self._decode(z).sample"),
            t.frame(VAE, "_decode", "out = self.decoder(x[:, :, i : i + 1])"),
            CONV,
            code="video = self.vae.decode(latents, return_dict=False)[0]",
            error=FULL,
        ),
        "decode",
        "decode_untiled",
        {"tried_bytes": g(1.5), "capacity_bytes": g(23.64), "free_bytes": m(319), "device": 0,
         "in_use_bytes": g(23.32), "allocated_bytes": g(22.41), "reserved_unallocated_bytes": m(402.1)},
    ),
    "diffusers decode in tiles": (
        t.diffusers(
            t.frame(VAE, "decode", "return self.tiled_decode(z, return_dict=return_dict)"),
            t.frame(VAE, "tiled_decode", "decoded = self.decoder(tile)"),
            CONV,
            code="video = self.vae.decode(latents, return_dict=False)[0]",
            error=FULL,
        ),
        "decode",
        "decode",
        {"tried_bytes": g(1.5)},
    ),
    "all steps done, no traceback": (
        "100%|██████████| 50/50 [1:33:36<00:00, 112.33s/it]\n" + FULL,
        "decode",
        "decode_untiled",
        {"allocated_bytes": g(22.41)},
    ),
    "first step, no traceback": (
        "Loading checkpoint shards: 100%|███| 6/6 [00:10<00:00]\n  0%|          | 0/50 [00:00<?, ?it/s]\n" + FULL,
        "denoise",
        "activations",
        {"tried_bytes": g(1.5)},
    ),
    "some steps done, carriage returns": (
        "  2%|▏ | 1/50 [00:10<08:10, 10.0s/it]\r  4%|▍ | 2/50 [00:20<08:00, 10.0s/it]\r" + FULL,
        "denoise",
        "activations",
        {"tried_bytes": g(1.5)},
    ),
    "denoise in the feed-forward": (
        t.diffusers(
            t.frame(DIT, "forward", "ff_output = self.ffn(norm_hidden_states)"),
            t.frame(t.SITE + "torch/nn/modules/activation.py", "forward", "return F.gelu(input)"),
            code="noise_pred = self.transformer(",
            error=t.new("1.02 GiB", "44.42 GiB", "900.00 MiB", "43.50 GiB", "42.10 GiB", "310.00 MiB"),
        ),
        "denoise",
        "activations",
        {"tried_bytes": g(1.02), "capacity_bytes": g(44.42)},
    ),
    "FramePack on a card before Ampere": (
        t.traceback(
            t.frame("/srv/FramePack/demo_gradio.py", "worker", "generated_latents = sample_hunyuan("),
            t.frame("/srv/FramePack/diffusers_helper/models/hunyuan_video_packed.py", "attn_varlen_func",
                    "x = torch.nn.functional.scaled_dot_product_attention(q, k, v)"),
            error=t.new("28.90 GiB", "21.50 GiB", "9.50 GiB", "12.00 GiB", "11.20 GiB", "300.00 MiB"),
        ),
        "denoise",
        "attention",
        {"tried_bytes": g(28.9), "capacity_bytes": g(21.5)},
    ),
    "1263 GiB at once": (
        t.traceback(
            t.frame("/srv/DiffSynth-Studio/diffsynth/models/hunyuan_video_dit.py", "attention", "x = F.scaled_dot_product_attention(q, k, v)"),
            error=t.old("1263.35 GiB", "31.74 GiB", "8.30 GiB", "20.90 GiB", "9.75 GiB"),
        ),
        None,
        "attention",
        {"tried_bytes": g(1263.35), "capacity_bytes": g(31.74), "reserved_bytes": g(9.75)},
    ),
    "CogVideoX attention scores": (
        t.diffusers(
            t.frame(t.SITE + "diffusers/models/transformers/cogvideox_transformer_3d.py", "forward", "hidden_states, encoder_hidden_states = block("),
            SDPA,
            code="noise_pred = self.transformer(",
            error=t.old("35.31 GiB", "23.69 GiB", "11.10 GiB", "10.02 GiB", "12.88 GiB"),
            pipeline="cogvideo/pipeline_cogvideox.py",
        ),
        "denoise",
        "attention",
        {"tried_bytes": g(35.31)},
    ),
    "torch 1.x, fragmented": (
        t.old("2.00 GiB", "23.69 GiB", "18.41 GiB", "310.00 MiB", "21.90 GiB"),
        None,
        "fragmentation",
        {"tried_bytes": g(2), "free_bytes": m(310), "reserved_bytes": g(21.9),
         "reserved_unallocated_bytes": g(21.9) - g(18.41)},
    ),
    "torch 2.x, fragmented": (
        t.new("1.50 GiB", "23.64 GiB", "1.19 GiB", "22.44 GiB", "20.11 GiB", "1.85 GiB"),
        None,
        "fragmentation",
        {"reserved_unallocated_bytes": g(1.85), "in_use_bytes": g(22.44)},
    ),
    "torch 2.1 with its spelling": (
        LOADED.replace("capacity", "capacty").replace("torch.Out", "torch.cuda.Out"),
        None,
        "weights_do_not_fit",
        {"capacity_bytes": g(14.74), "tried_bytes": m(90)},
    ),
    "pipe.to on a T4": (
        t.traceback(
            t.frame("/content/run.py", "<module>", 'pipe.to("cuda")'),
            t.frame(t.SITE + "diffusers/pipelines/pipeline_utils.py", "to", "module.to(device, dtype)"),
            t.frame(t.SITE + "torch/nn/modules/module.py", "_apply", "param_applied = fn(param)"),
            t.TO,
            error=LOADED,
        ),
        "load",
        "load_on_card",
        {"tried_bytes": m(90)},
    ),
    "one component moved whole": (
        t.diffusers(
            HOOK,
            t.frame(t.SITE + "torch/nn/modules/module.py", "_apply", "module._apply(fn)"),
            t.TO,
            code="noise_pred = self.transformer(",
            error=LOADED,
            pipeline="flux/pipeline_flux.py",
        ),
        "denoise",
        "weights_do_not_fit",
        {"allocated_bytes": g(14.6)},
    ),
    "text encoder": (
        t.diffusers(
            t.frame(t.SITE + "diffusers/pipelines/ltx2/pipeline_ltx2.py", "encode_prompt", "prompt_embeds = self._get_gemma_prompt_embeds("),
            t.frame(t.SITE + "transformers/models/gemma3/modeling_gemma3.py", "forward", "hidden_states = self.mlp(hidden_states)"),
            code="self.encode_prompt(",
            error=t.new("144.00 MiB", "22.03 GiB", "91.00 MiB", "21.93 GiB", "21.60 GiB", "20.00 MiB"),
            pipeline="ltx2/pipeline_ltx2.py",
        ),
        "encode_prompt",
        "text_encoder_resident",
        {"tried_bytes": m(144)},
    ),
    "input picture encoded": (
        t.diffusers(
            t.frame(t.SITE + "diffusers/pipelines/wan/pipeline_wan_i2v.py", "prepare_latents", "latent_condition = retrieve_latents(self.vae.encode(video_condition))"),
            t.frame(VAE, "_encode", "out = self.encoder(x[:, :, :1])"),
            CONV,
            code="latents_outputs = self.prepare_latents(",
            error=FULL,
            pipeline="wan/pipeline_wan_i2v.py",
        ),
        "encode_condition",
        "activations",
        {"tried_bytes": g(1.5)},
    ),
    "another process": (
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.15 GiB of"
        " which 1.20 GiB is free. Process 2811 has 40.12 GiB memory in use. Including non-PyTorch memory, this"
        " process has 37.80 GiB memory in use. Of the allocated memory 36.90 GiB is allocated by PyTorch, and"
        " 210.11 MiB is reserved by PyTorch but unallocated.",
        None,
        "other_process",
        {"other_bytes": g(40.12), "device": 1},
    ),
    "ComfyUI VAE decode": (
        "Requested to load WanVAE\nloaded completely 19000.0 242.0 True\n"
        "!!! Exception during processing !!! Allocation on device \n"
        + t.traceback(
            t.frame(t.COMFY + "execution.py", "execute", "output_data = get_output_data(obj, input_data_all)"),
            t.frame(t.COMFY + "nodes.py", "decode", 'images = vae.decode(samples["samples"])'),
            t.frame(t.COMFY + "comfy/sd.py", "decode", "out = self.process_output(self.first_stage_model.decode(samples))"),
            t.frame(t.COMFY + "comfy/ldm/wan/vae.py", "decode", "out = self.decoder(x[:, :, i:i + 1, :, :])"),
            error="torch.OutOfMemoryError: Allocation on device \n\nGot an OOM, unloading all loaded models.\nPrompt executed in 88.1 seconds",
        ),
        "decode",
        "decode_untiled",
        {"tried_bytes": None, "backend": "cuda"},
    ),
    "ComfyUI async allocator": (
        "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"
        "Currently allocated     : 22.16 GiB\nRequested               : 1.50 GiB\nDevice limit            : 23.99 GiB\n"
        "Free (according to CUDA): 25.44 MiB\nPyTorch limit (set by user-supplied memory fraction)\n"
        "                        : 17179869184.00 GiB\n",
        None,
        "unknown",
        {"tried_bytes": g(1.5), "allocated_bytes": g(22.16), "capacity_bytes": g(23.99), "free_bytes": m(25.44)},
    ),
    "ComfyUI sampler": (
        "got prompt\nRequested to load FluxClipModel_\nRequested to load Flux\nloaded partially 9000 8990 0\n"
        "!!! Exception during processing !!! Allocation on device\n"
        + t.traceback(
            t.frame(t.COMFY + "nodes.py", "common_ksampler", "samples = comfy.sample.sample(model, noise, steps)"),
            t.frame(t.COMFY + "comfy/samplers.py", "calc_cond_batch", "output = model.apply_model(input_x)"),
            t.frame(t.COMFY + "comfy/ldm/flux/model.py", "forward_orig", "img, txt = block(img=img, txt=txt)"),
            error="torch.OutOfMemoryError: Allocation on device",
        ),
        "denoise",
        "activations",
        {"tried_bytes": None},
    ),
    "ComfyUI fell back to tiles": (
        "Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.\nPrompt executed in 410.20 seconds",
        "decode",
        "decode_untiled",
        {"tried_bytes": None},
    ),
    "ComfyUI loads": (
        "Requested to load WAN21\nError occurred when executing LoadWanVideoT5TextEncoder:\n\n"
        + t.new("512.00 MiB", "11.99 GiB", "0 bytes", "11.80 GiB", "11.20 GiB", "40.00 MiB"),
        "load",
        "text_encoder_resident",
        {"free_bytes": 0, "tried_bytes": m(512)},
    ),
    "WanVideoWrapper sampler": (
        t.traceback(
            t.frame(t.COMFY + "custom_nodes/ComfyUI-WanVideoWrapper/nodes_sampler.py", "process", "noise_pred, self.cache_state = predict_with_cfg("),
            t.frame(t.COMFY + "custom_nodes/ComfyUI-WanVideoWrapper/wanvideo/modules/model.py", "forward", "x = block(x, **kwargs)"),
            error=t.new("620.00 MiB", "21.96 GiB", "300.00 MiB", "21.60 GiB", "20.80 GiB", "180.00 MiB"),
        ),
        "denoise",
        "activations",
        {"tried_bytes": m(620)},
    ),
    "WanVideoWrapper decode on Windows": (
        "Sampling 81 frames at 832x480 with 30 steps\n100%|####| 30/30 [05:00<00:00, 10.00s/it]\n"
        + t.traceback(
            t.frame(r"D:\ComfyUI\custom_nodes\ComfyUI-WanVideoWrapper\nodes.py", "decode", "images = vae.decode(latents, device=device)[0]"),
            t.frame(r"D:\ComfyUI\custom_nodes\ComfyUI-WanVideoWrapper\wanvideo\wan_video_vae.py", "decode", "out = self.decoder(x)"),
            error=FULL,
        ),
        "decode",
        "decode_untiled",
        {"tried_bytes": g(1.5)},
    ),
    "official Wan script": (
        "[2025-03-01 10:11:12,000] INFO: Creating WanT2V pipeline.\n[2025-03-01 10:12:00,000] INFO: Generating video ...\n"
        + t.traceback(
            t.frame("/srv/Wan2.1/generate.py", "<module>", "generate(args)"),
            t.frame("/srv/Wan2.1/wan/text2video.py", "generate", "videos = self.vae.decode(x0)"),
            t.frame("/srv/Wan2.1/wan/modules/vae.py", "decode", "out = self.decoder(x[:, :, i:i + 1, :, :])"),
            error=FULL,
        ),
        "decode",
        "decode_untiled",
        {"tried_bytes": g(1.5)},
    ),
    "official Wan script loads T5": (
        t.traceback(
            t.frame("/srv/Wan2.1/wan/text2video.py", "__init__", "self.text_encoder = T5EncoderModel("),
            t.frame("/srv/Wan2.1/wan/modules/t5.py", "__init__", "self.model.to(self.device)"),
            t.TO,
            error=t.new("160.00 MiB", "11.76 GiB", "60.00 MiB", "11.60 GiB", "11.20 GiB", "3.00 MiB"),
        ),
        "load",
        "text_encoder_resident",
        {"tried_bytes": m(160)},
    ),
    "ranks of torchrun": (
        "\n".join(
            f"[rank3]: {line}"
            for line in t.traceback(
                t.frame("/srv/Wan2.2/wan/image2video.py", "generate", "noise_pred_cond = model("),
                t.frame("/srv/Wan2.2/wan/modules/model.py", "forward", "x = block(x, **kwargs)"),
                error=t.new("158.00 MiB", "39.39 GiB", "40.00 MiB", "39.35 GiB", "38.60 GiB", "44.00 MiB", gpu=3),
            ).splitlines()
        ),
        "denoise",
        "activations",
        {"tried_bytes": m(158), "device": 3, "capacity_bytes": g(39.39)},
    ),
    "killed while loading": (
        "Loading checkpoint shards:  43%|████▎     | 3/7 [00:41<00:55, 13.8s/it]\nKilled\n",
        "load",
        "host_ram",
        {"tried_bytes": None, "backend": "cpu"},
    ),
    "killed after the last step": (
        "100%|██████████| 40/40 [45:42<00:00, 68.56s/it]\n./run.sh: line 7: 41234 Killed                  python generate.py --task i2v-14B\n",
        "decode",
        "host_ram",
        {"tried_bytes": None},
    ),
    "exit code 137": (
        "subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 137.",
        None,
        "host_ram",
        {"tried_bytes": None},
    ),
    "torchrun exitcode -9": (
        "E0301 12:00:00 api.py:869] failed (exitcode: -9) local_rank: 0 (pid: 4242) of binary: /usr/bin/python3",
        None,
        "host_ram",
        {"tried_bytes": None},
    ),
    "DefaultCPUAllocator": (
        t.traceback(
            t.frame(t.SITE + "transformers/modeling_utils.py", "_load_state_dict_into_meta_model", "param = param[...]"),
            error="RuntimeError: [enforce fail at alloc_cpu.cpp:116] data. DefaultCPUAllocator: not enough memory: you tried to allocate 113246208 bytes.",
        ),
        "load",
        "host_ram",
        {"tried_bytes": 113246208, "backend": "cpu"},
    ),
    "page file": (
        "OSError: The paging file is too small for this operation to complete. (os error 1455)",
        None,
        "host_ram",
        {"tried_bytes": None},
    ),
    "numpy at export": (
        t.traceback(
            t.frame("/srv/job/run.py", "<module>", 'export_to_video(frames, "out.mp4", fps=16)'),
            t.frame(t.SITE + "diffusers/utils/export_utils.py", "export_to_video", "frames = [(frame * 255).astype(np.uint8)]"),
            error="numpy._core._exceptions._ArrayMemoryError: Unable to allocate 4.50 GiB for an array with shape (161, 1080, 1920, 3) and data type float32",
        ),
        "export",
        "host_ram",
        {"tried_bytes": g(4.5)},
    ),
    "pinned memory refused": (
        t.traceback(
            t.frame("/srv/HunyuanVideoGP/gradio_server.py", "<module>", "offloadobj = offload.profile(pipe, profile_no=4)"),
            t.frame(t.SITE + "mmgp/offload.py", "_pin_to_memory", "big_tensor = torch.empty(size, pin_memory=True)"),
            error="RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call",
        ),
        None,
        "pinned_memory",
        {"tried_bytes": None, "backend": "cpu"},
    ),
    "cudaHostAlloc": (
        "torch.AcceleratorError: CUDA error: out of memory\nException raised from cudaHostAlloc at CachingHostAllocator.cpp:97",
        None,
        "pinned_memory",
        {"tried_bytes": None},
    ),
    "already mapped": (
        t.traceback(
            t.frame(t.SITE + "diffusers/hooks/group_offloading.py", "_init_cpu_param_dict", "param.data.cpu().pin_memory()"),
            error="RuntimeError: CUDA error: resource already mapped",
        ),
        None,
        "pinned_memory",
        {"tried_bytes": None},
    ),
    "invalid argument while pinning": (
        t.traceback(
            t.frame(t.SITE + "torch/_tensor.py", "pin_memory", "return self.pin_memory()"),
            error="RuntimeError: CUDA error: invalid argument",
        ),
        None,
        "pinned_memory",
        {"tried_bytes": None},
    ),
    "HIP": (
        t.new("4.50 GiB", "15.98 GiB", "1.00 GiB", "14.60 GiB", "13.90 GiB", "210.00 MiB", head="torch.cuda.OutOfMemoryError: HIP"),
        None,
        "unknown",
        {"backend": "hip", "tried_bytes": g(4.5)},
    ),
    "MPS": (
        "RuntimeError: MPS backend out of memory (MPS allocated: 17.23 GB, other allocations: 400.00 MB, max allowed: 18.13 GB)."
        " Tried to allocate 1.00 GB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).",
        None,
        "unknown",
        {"backend": "mps", "allocated_bytes": g(17.23), "capacity_bytes": g(18.13), "tried_bytes": g(1), "other_bytes": m(400)},
    ),
    "number types": (
        t.traceback(t.USER, error="RuntimeError: expected scalar type Half but found BFloat16"),
        None,
        "dtype",
        {"tried_bytes": None},
    ),
    "no CUDA in the build": (
        t.traceback(
            t.frame("/srv/job/run.py", "<module>", 'pipe.to("cuda")'),
            error="AssertionError: Torch not compiled with CUDA enabled",
        ),
        "load",
        "no_memory_error",
        {"tried_bytes": None},
    ),
    "no kernel for the card": (
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported",
        None,
        "no_memory_error",
        {"backend": None},
    ),
    "slow on Windows": (
        "The driver is using shared GPU memory, 100% utilisation at low power.\n 7%| | 1/14 [06:01<78:13, 361.01s/it]",
        "denoise",
        "spill",
        {"tried_bytes": None},
    ),
    "slowed to a crawl": (
        "  2%|▏ | 1/50 [00:10<08:10, 10.00s/it]\n  4%|▍ | 2/50 [06:30<08:00, 380.00s/it]\n",
        "denoise",
        "spill",
        {"tried_bytes": None},
    ),
    "A1111": (
        "*** Error completing request\n    "
        + t.traceback(
            t.frame("C:\\stable-diffusion-webui\\modules\\processing.py", "process_images_inner", "x_samples_ddim = decode_latent_batch(p.sd_model, samples_ddim)"),
            t.frame("C:\\stable-diffusion-webui\\modules\\sd_samplers_common.py", "decode_first_stage", "x = model.decode_first_stage(x)"),
            t.frame("C:\\stable-diffusion-webui\\repositories\\generative-models\\sgm\\models\\autoencoder.py", "decode", "dec = self.decoder(z)"),
            error=t.old("4.50 GiB", "8.00 GiB", "5.90 GiB", "0 bytes", "6.90 GiB"),
        ).replace("\n", "\n    "),
        "decode",
        "decode_untiled",
        {"tried_bytes": g(4.5), "free_bytes": 0},
    ),
    "notebook": (
        "---------------------------------------------------------------------------\n"
        "OutOfMemoryError                          Traceback (most recent call last)\n"
        "/tmp/ipykernel_1/1.py in <cell line: 3>()\n----> 3 image = pipe(prompt).images[0]\n\n"
        "/usr/local/lib/python3.10/dist-packages/diffusers/pipelines/flux/pipeline_flux.py in __call__(self, prompt)\n"
        "    790             latents = self._unpack_latents(latents)\n"
        "--> 791             image = self.vae.decode(latents, return_dict=False)[0]\n\n"
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.74 GiB of"
        " which 1.04 GiB is free. Process 3005 has 13.69 GiB memory in use. Of the allocated memory 12.90 GiB is"
        " allocated by PyTorch, and 670.12 MiB is reserved by PyTorch but unallocated.",
        "decode",
        "decode_untiled",
        {"tried_bytes": g(2), "capacity_bytes": g(14.74)},
    ),
    "an error of another kind": (
        t.traceback(t.USER, error="KeyError: 'transformer'"),
        None,
        "no_memory_error",
        {"tried_bytes": None},
    ),
    "nothing wrong": ("Prompt executed in 12.01 seconds\n", None, "unknown", {"tried_bytes": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_text_tells_numbers_stage_and_cause(name):
    text, stage, cause, numbers = CASES[name]
    found = diagnose(read(text))
    assert (found.stage, found.cause) == (stage, cause)
    assert {key: getattr(found.numbers, key) for key in numbers} == numbers


@pytest.mark.parametrize("name", CASES)
def test_every_cause_says_why_and_what_next_and_prices_rise(name):
    found = diagnose(read(CASES[name][0]))
    order = ["free", "slower", "more_ram", "lossy", "other_job"]
    ranks = [order.index(cure.price) for cure in found.cures]
    assert found.why.text and found.next_step.text
    assert ranks == sorted(ranks)
    assert all(cure.predicted is None for cure in found.cures)


def test_only_an_error_of_another_kind_has_no_cure():
    without = {name for name, (text, *_) in CASES.items() if not diagnose(read(text)).cures}
    assert without == {"an error of another kind"}


def test_the_evidence_points_at_lines_of_the_text():
    text = CASES["diffusers decode"][0]
    found = diagnose(read(text))
    lines = text.splitlines()
    told = [each for each in found.evidence if each.line is not None]
    assert [each.tells.code for each in told] == [
        "autopsy-tells-device",
        "autopsy-tells-stage-decode",
    ]
    assert "Tried to allocate" in lines[told[0].line - 1]
    assert "autoencoder_kl_wan.py" in lines[told[1].line - 1]
    assert found.line_of_error == len(lines)


def test_the_program_is_known_by_its_files():
    programs = {name: diagnose(read(text)).program for name, (text, *_) in CASES.items()}
    assert programs["diffusers decode"] == "diffusers"
    assert programs["ComfyUI VAE decode"] == "comfyui"
    assert programs["A1111"] == "a1111"
    assert programs["official Wan script"] == "official"
    assert programs["pinned memory refused"] == "wan2gp"


def test_a_free_cure_is_named_for_fragments_and_tiles_for_a_decode():
    codes = {
        name: [cure.code for cure in diagnose(read(text)).cures]
        for name, (text, *_) in CASES.items()
    }
    assert codes["torch 2.x, fragmented"][0] == "segments"
    assert (
        "tiling" in codes["diffusers decode"]
        and "smaller_tile" in codes["diffusers decode in tiles"]
    )
    assert codes["FramePack on a card before Ampere"][0] == "fused_attention"
    assert codes["no kernel for the card"] == ["kernel_build"]
    assert codes["no CUDA in the build"] == ["cuda_build"]
    assert "close_others" in codes["another process"]
    assert "more_ram" in codes["killed while loading"]
