#pragma once

// What the project uses of LibTorch: tensors and their operations, autograd functions, modules. Precompiled once; sources don't include it.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>
