#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "gallop/compile/device_graph.h"

namespace gallop::compile {

/// A CUDA graph on the CPU: it keeps the calls of operators that `work` makes, with the tensors
/// they were given and gave, undoes what they did, and makes the same calls with the same memory at
/// each replay.
class FakeDeviceGraph : public DeviceGraph {
 public:
  void capture(const std::function<void()>& work) override;
  void replay() override;

  /// The fallback that the dispatcher calls for each operator.
  void keep(const c10::OperatorHandle& op, std::vector<c10::IValue>& stack);

 private:
  struct Call {
    c10::OperatorHandle op;
    std::vector<c10::IValue> arguments;
    std::vector<at::Tensor> results;  // Results with their own memory.
  };
  struct Saved {
    at::Tensor tensor, before;
  };
  std::vector<Call> calls_;
  std::vector<Saved> saved_;
};

/// For both CPU and GPU.
std::unique_ptr<DeviceGraph> make_fake_graph(c10::Device device, std::string& missing);

}  // namespace gallop::compile
