// Precompiled for the few modules that use torch/nn and autograd internals.
#pragma once

#include <torch/nn/module.h>

#include "none.h"
