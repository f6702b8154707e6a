// Precompiled for tests of modules without LibTorch.
#pragma once

#include <gtest/gtest.h>

#include "none.h"
