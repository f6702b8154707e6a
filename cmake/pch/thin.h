// Precompiled for modules that hold tensors and call single operators.
#pragma once

#include <ATen/core/Tensor.h>

#include "none.h"
