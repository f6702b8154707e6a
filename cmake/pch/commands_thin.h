// Precompiled for commands with LibTorch.
#pragma once

#include <ATen/core/Tensor.h>

#include "commands_none.h"
