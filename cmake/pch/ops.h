// Precompiled for modules most of whose files call operators of LibTorch: they include
// ATen/Context.h, which takes longer to parse than this to load.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "thin.h"
