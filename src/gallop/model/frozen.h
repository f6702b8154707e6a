#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/model/model.h"

namespace gallop::model {

/// Freezes the parameters whose names match one of these glob patterns (*, ?): they get no gradient
/// and become buffers, which training does not change. Throws UsageError, beginning with
/// "train.freeze", if a pattern matches no parameter, or if no parameter is left to train.
std::unique_ptr<Model> freeze(std::unique_ptr<Model> model,
                              const std::vector<std::string>& patterns);

}  // namespace gallop::model
