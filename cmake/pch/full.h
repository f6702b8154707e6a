// Precompiled for the few modules that use torch/nn and autograd internals.
#pragma once

#include "none.h"

#include <torch/torch.h>
