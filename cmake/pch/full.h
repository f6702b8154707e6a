// Precompiled for the few modules that use torch/nn and autograd internals.
#pragma once

#include <torch/torch.h>

#include "none.h"
