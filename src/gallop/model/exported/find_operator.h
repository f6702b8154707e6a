#pragma once

#include <optional>

#include <ATen/core/dispatch/Dispatcher.h>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// The operator of LibTorch or of an extension that a node calls; nothing if there is none.
inline std::optional<c10::OperatorHandle> find_operator(const Node& node) {
  return c10::Dispatcher::singleton().findSchema({node.function, node.overload});
}

}  // namespace gallop::model::exported
