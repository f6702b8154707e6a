#pragma once

#include <optional>

#include <ATen/core/ivalue.h>

#include "gallop/base/error.h"
#include "gallop/compile/graph.h"

namespace gallop::compile {

/// The value of an argument for a call; `tensor_of` returns the tensor of a view other than kNone.
template <typename TensorOf>
c10::IValue value_of(const Operand& operand, const TensorOf& tensor_of) {
  const auto tensor_or_none = [&](ViewId view) {
    return view == kNone ? at::Tensor() : at::Tensor(tensor_of(view));
  };
  switch (operand.kind) {
    case Operand::Kind::kConstant: return operand.constant;
    case Operand::Kind::kTensor: return tensor_or_none(operand.views[0]);
    case Operand::Kind::kTensors: {
      c10::List<at::Tensor> list;
      list.reserve(operand.views.size());
      for (const ViewId view : operand.views) list.push_back(tensor_or_none(view));
      return list;
    }
    case Operand::Kind::kOptionalTensors: {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(operand.views.size());
      for (const ViewId view : operand.views) {
        list.push_back(view == kNone ? std::nullopt : std::optional<at::Tensor>(tensor_of(view)));
      }
      return list;
    }
  }
  throw InternalError("an operand of unknown kind");
}

}  // namespace gallop::compile
