"""The precisions that weights are stored in, and how many bytes one weight takes."""

# Scales are included: MXFP4 stores 8 bits for 32 weights, NVFP4 8 bits for 16 weights. The group size of INT4 is often
# unknown, so 16 is assumed. Plain `fp4` counts no scales: the lowest possible size, so that bounds made of it hold.
WEIGHT_BYTES = {
    "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0,
    "mxfp4": 0.53125, "nvfp4": 0.5625, "fp4": 0.5, "int4": 0.5625,
}  # fmt: skip
# Blocks of GGUF files. A file mixes them and has no less in the mean than the one that it is named after.
GGUF_BYTES = {
    "q8_0": 8.5 / 8, "q6_k": 6.5625 / 8, "q5_k": 5.5 / 8, "q4_k": 4.5 / 8, "iq4_xs": 4.25 / 8, "q3_k": 3.4375 / 8,
    "q2_k": 2.5625 / 8,
}  # fmt: skip
WEIGHT_BYTES |= GGUF_BYTES
