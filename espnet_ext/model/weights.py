"""Layers as plain functions of few rows, without a module's overhead, which at this size is as long as their work."""

import warnings
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

PACK_FROM = 128 * 1024  # elements of a weight from which oneDNN's packed product is the faster one


def linear(
    *linears: torch.nn.Linear, rows: int, precision: str = "float32", packed: bool = True
) -> Callable[[Tensor], Tensor]:
    """Linear layers of one input as one function.

    At full precision large weights are packed for oneDNN, which is then the fastest; `rows` is the number of input
    rows that the packed layout is made for, any other works. `torch.compile` needs them unpacked.
    """
    weight = torch.cat([linear.weight.detach() for linear in linears])
    biases = [weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias for linear in linears]
    bias = torch.cat([bias.detach() for bias in biases])
    if precision == "int8":
        quantised = _pack_int8(weight, bias)
        return lambda x: torch.ops.quantized.linear_dynamic(x, quantised)
    if precision == "bfloat16":
        weight, bias = weight.bfloat16(), bias.bfloat16()
        return lambda x: F.linear(x.bfloat16(), weight, bias).float()
    return product(weight, bias, rows) if packed else partial(F.linear, weight=weight, bias=bias)


def product(weight: Tensor, bias: Tensor, rows: int) -> Callable[[Tensor], Tensor]:
    """`F.linear` with this weight `(out, in)` and bias, packed for oneDNN where that pays."""
    if weight.is_cpu and torch.backends.mkldnn.is_available() and weight.numel() >= PACK_FROM:
        pointwise = torch.ops.mkldnn._linear_pointwise.default
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        return lambda x: pointwise(x, packed, bias, "none", [], "")
    return partial(F.linear, weight=weight, bias=bias)


def convolution_relu(conv: torch.nn.Conv2d) -> Callable[[Tensor], Tensor]:
    """A convolution without padding or groups and its ReLU as one function, packed for oneDNN where that is there."""
    weight, bias, stride = conv.weight.detach(), conv.bias.detach(), conv.stride
    if weight.is_cpu and torch.backends.mkldnn.is_available():
        pointwise = torch.ops.mkldnn._convolution_pointwise.default
        packed = torch._C._nn.mkldnn_reorder_conv2d_weight(weight.to_mkldnn(), stride=stride)
        return lambda x: pointwise(x, packed, bias, (0, 0), stride, (1, 1), 1, "relu", [], "")
    return lambda x: F.conv2d(x, weight, bias, stride).relu_()


def layer_norm(norm: torch.nn.LayerNorm) -> Callable[[Tensor], Tensor]:
    """A layer norm over the last dimension."""
    return partial(
        torch.layer_norm, normalized_shape=norm.normalized_shape, weight=norm.weight, bias=norm.bias, eps=norm.eps
    )


def _pack_int8(weight: Tensor, bias: Tensor) -> object:
    """Weights of 8 bits with a scale a row; inputs are quantised when they come."""
    scales = weight.abs().amax(dim=1).clamp(min=1e-8) / 127
    zeros = torch.zeros(len(scales), dtype=torch.int64)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # it is deprecated
        quantised = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(quantised, bias)
