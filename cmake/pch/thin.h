// Precompiled for modules that hold tensors and call single operators.
#pragma once

#include "none.h"

#include <ATen/core/Tensor.h>
